"""Word lists that ship with the package: common words, given names, surnames, places.

Built by scripts/build_word_lists.py; sources and licences in words/README.md.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from importlib import resources


@lru_cache(maxsize=None)
def _lines(name: str) -> list[str]:
    return (resources.files(__package__) / "words" / name).read_text("utf-8").split("\n")[:-1]


@lru_cache(maxsize=1)
def common() -> dict[str, int]:
    """English words written in lower case -> rank by use, 0 for the most used."""
    return {word: rank for rank, word in enumerate(_lines("common_en.txt"))}


@lru_cache(maxsize=1)
def first_names() -> frozenset[str]:
    return frozenset(_lines("first_names.txt"))


@lru_cache(maxsize=1)
def surnames() -> frozenset[str]:
    return frozenset(_lines("surnames.txt"))


@lru_cache(maxsize=1)
def places() -> frozenset[str]:
    """Towns of some size, countries, US states; several words with blanks between."""
    return frozenset(_lines("places.txt"))


@lru_cache(maxsize=1)
def proper() -> frozenset[str]:
    """English words that are only written with a capital and name no person: makes, peoples."""
    return frozenset(_lines("proper_en.txt"))


def plain(word: str) -> str:
    """The form in which words are looked up: lower case, without accents, straight quotes."""
    if word.isascii():
        return word.lower()
    parts = unicodedata.normalize("NFD", word.casefold().replace("’", "'"))
    return "".join(c for c in parts if not unicodedata.combining(c))


def is_common(word: str) -> bool:
    """Is `word` (as `plain` gives it) an English word written in lower case, or a form of one?"""
    words = common()
    if word in words:
        return True
    for end in ("'s", "s", "es", "ed", "ing", "er", "ly"):
        if word.endswith(end) and len(word) - len(end) > 3 and word[: -len(end)] in words:
            return True
    return False


def ordinary(words: str) -> bool:
    """Is every word of `words` one that English writes small, whatever its case here?"""
    return all(is_common(plain(w)) for w in re.findall(r"[^\W\d_]+", words))
