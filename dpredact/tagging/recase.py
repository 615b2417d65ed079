"""Text in capitals, or without any, in ordinary writing: for those who find names by capitals.

The copy has the same length, so offsets stay. In a paragraph of capitals, words that English
writes in lower case become lower case and the others keep one capital: the names stand out.
In a paragraph without a capital, words that are in no dictionary get one.
"""

from __future__ import annotations

import re

from dpredact.tagging import lexicon

_LINE = re.compile(r"[^\n]+")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_FEW = 8  # letters: a shorter line is an acronym or a heading


def recase(text: str) -> str:
    """A copy of `text`, equally long, in which lines all in capitals read like prose."""
    return _LINE.sub(lambda m: _line(m[0]), text)


def is_capitals(line: str) -> bool:
    letters = [c for c in line if c.isalpha()]
    return len(letters) >= _FEW and sum(c.isupper() for c in letters) >= 0.8 * len(letters)


def _line(line: str) -> str:
    # Cheap test first: most lines have lower-case letters near their start.
    if len(line) >= _FEW and not line[:60].islower() and line[:40].upper() == line[:40] and is_capitals(line):
        return _WORD.sub(_prose, line)
    return line


def _prose(match: re.Match[str]) -> str:
    word = match[0]
    if not word.isupper():
        return word
    lower = word.lower()
    if len(lower) != len(word):
        return word
    if len(word) == 1:
        return word if word == "I" else word
    if lexicon.is_common(lexicon.plain(word)):
        start = match.start() == 0 or match.string[: match.start()].rstrip()[-1:] in (".", "!", "?")
        return word[0] + lower[1:] if start else lower
    if len(word) <= 3 and not set(lower) & set("aeiouy"):
        return word
    return word[0] + lower[1:]
