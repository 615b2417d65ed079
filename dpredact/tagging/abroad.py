"""What English name finders say about paragraphs in other languages, cut down to what can be names.

They take "la presencia de hematuria" for a person. In Spanish, French, German and Danish a
name is written with capitals; so of such a finding only its runs of capitalised words stay,
and of those no word that the text also writes in lower case, and no label of a field.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace

from dpredact.tagging import language, lexicon
from dpredact.tagging.interface import Span

_WORD = re.compile(r"[^\W\d_]+(?:['’.-]+[^\W\d_]+)*\.?")
_ELIDED = re.compile(r"(?:[dlnsmtcj]|qu)['’](?=[^\W\d_])", re.IGNORECASE)
_SMALL = frozenset(word for words in language.FUNCTION_WORDS.values() for word in words)
_TIES = frozenset("de del della di da das do dos du des la las los le van von der den zu y e et und og af of the i".split())
_KINDS = frozenset({"PERSON", "LOCATION", "ORG"})


class Abroad:
    """The paragraphs of one text that are not in English."""

    def __init__(self, text: str) -> None:
        self._text = text
        parts = language.paragraphs(text)
        self._starts = [a for a, _ in parts]
        whole = language.guess(text)  # decides where a short paragraph does not tell
        self._foreign = [(language.guess(text[a:b]) or whole) not in (None, "en") for a, b in parts]
        self._lower: frozenset[str] | None = None

    @property
    def everywhere(self) -> bool:
        """Is most of the text foreign?"""
        return sum(self._foreign) * 2 > len(self._foreign)

    def cores(self, span: Span) -> Iterator[Span]:
        """The runs of `span` that can be names; `span` itself in an English paragraph."""
        index = bisect_right(self._starts, span.start) - 1
        if span.entity not in _KINDS or index < 0 or not self._foreign[index]:
            yield span
            return
        run: list[tuple[int, int]] = []
        for start, end, word in self._words(span):
            if self._capital(word) or (run and word in _TIES):
                run.append((start, end))
            else:
                yield from self._core(span, run)
                run = []
        yield from self._core(span, run)

    def _words(self, span: Span) -> Iterator[tuple[int, int, str]]:
        for match in _WORD.finditer(self._text, span.start, span.end):
            elided = _ELIDED.match(self._text, match.start(), match.end())
            start = elided.end() if elided else match.start()
            yield start, match.end(), self._text[start : match.end()]

    def _capital(self, word: str) -> bool:
        plain = lexicon.plain(word).rstrip(".")
        return word[0].isupper() and plain not in _SMALL

    def _core(self, span: Span, run: list[tuple[int, int]]) -> Iterator[Span]:
        while run and self._text[run[-1][0] : run[-1][1]] in _TIES:
            run = run[:-1]
        if not run:
            return
        start, end = run[0][0], run[-1][1]
        words = self._text[start:end]
        if self._text[end : end + 1] == ":" or all(self._ordinary(self._text[a:b]) for a, b in run):
            return
        if any(c.isalpha() for c in words):
            yield replace(span, start=start, end=end)

    def _ordinary(self, word: str) -> bool:
        """Does the text write this word in lower case, too?"""
        if self._lower is None:
            self._lower = frozenset(w for w in re.findall(r"[^\W\d_]+", self._text) if w.islower())
        return word in _TIES or word.lower().rstrip(".") in self._lower
