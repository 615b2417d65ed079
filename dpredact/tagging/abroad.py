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
from functools import cached_property

from dpredact.tagging import language, lexicon
from dpredact.tagging.interface import Span

_WORD = re.compile(r"[^\W\d_]+(?:['’.-]+[^\W\d_]+)*\.?")
_ELIDED = re.compile(r"(?:[dlnsmtcj]|qu)['’](?=[^\W\d_])", re.IGNORECASE)
_SMALL = frozenset(word for words in language.FUNCTION_WORDS.values() for word in words)
_TIES = frozenset("de del della di da das do dos du des la las los le van von der den zu y e et und og af of the i".split())
_LABEL = re.compile(r"[^\n:.,]{0,25}:")
_KINDS = frozenset({"PERSON", "LOCATION", "ORG"})


class Abroad:
    """The paragraphs of one text that are not in English.

    home: language that the settings name first; decides where the text itself does not tell.
    """

    def __init__(self, text: str, home: str = "en") -> None:
        self._text = text
        self._home = home
        self._told: dict[int, bool] = {}

    @cached_property
    def _parts(self) -> list[tuple[int, int]]:
        return language.paragraphs(self._text)

    @cached_property
    def _whole(self) -> str | None:
        return language.guess(self._text[:50_000]) or self._home

    def _foreign(self, index: int) -> bool:
        """Is paragraph `index` in another language? The whole decides where it does not tell."""
        if index not in self._told:
            start, end = self._parts[index]
            code = language.guess(self._text[start:end]) or self._whole
            self._told[index] = code not in (None, "en")
        return self._told[index]

    @property
    def everywhere(self) -> bool:
        """Is the text as a whole foreign?"""
        return self._whole not in (None, "en")

    def cores(self, span: Span) -> Iterator[Span]:
        """The runs of `span` that can be names; `span` itself in an English paragraph."""
        index = bisect_right(self._parts, (span.start, len(self._text) + 1)) - 1
        if span.entity not in _KINDS or index < 0 or not self._foreign(index):
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
        if _LABEL.match(self._text, end) and self._text[start - 1 : start] in ("", "\n"):
            return  # the label of a field, as in "Fecha de nacimiento:"
        if self._text[end : end + 1] == ":" or all(self._ordinary(self._text[a:b]) for a, b in run):
            return
        if any(c.isalpha() for c in words):
            yield replace(span, start=start, end=end)

    @cached_property
    def _lower(self) -> frozenset[str]:
        return frozenset(w for w in re.findall(r"[^\W\d_]+", self._text) if w.islower())

    def _ordinary(self, word: str) -> bool:
        """Does the text write this word in lower case, too?"""
        return word in _TIES or word.lower().rstrip(".") in self._lower
