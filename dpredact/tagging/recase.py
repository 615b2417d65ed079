"""Text in capitals, or without any, in ordinary writing: for those who find names by capitals.

The copy has the same length, so offsets stay. In a line of capitals, words that English
writes in lower case become lower case and the others keep one capital: the names stand out.
In a paragraph without a capital, words that are in no dictionary get one.
"""

from __future__ import annotations

import re

from dpredact.tagging import language, lexicon

_LINE = re.compile(r"[^\n]+")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
# What stands between a house number and a word for a street keeps its capitals.
_STREET = re.compile(
    r"(?<=\d )(?:[A-Z.'-]+ ){1,3}(?:ST|STREET|RD|ROAD|AVE|AVENUE|LN|LANE|DR|DRIVE|CT|COURT|BLVD|BOULEVARD|WAY|PL|PLACE|SQ|SQUARE|"
    r"TERRACE|CLOSE|CRESCENT|PKWY|PARKWAY|HWY|HIGHWAY|ROW|WALK|HILL|GARDENS|GROVE|MEWS|CIRCLE|TRAIL)\b(?:,? (?:APT|SUITE|UNIT|FLAT)\b)?(?:,(?: [A-Z]+){1,3}(?=,? ))?"
)
_FIRM = re.compile(r"(?:(?!(?:FOR|AT|OF|BY|TO|IN|THE|AND|FROM|WITH|IS|WAS) )[A-Z.&'-]+ ){1,2}(?:LTD|LIMITED|INC|LLC|LLP|PLC|CORP|GMBH|A/S|APS|AG)\b")
_HOUSE = re.compile(r"(?<=[A-Z] )(?:HOSPITAL|SCHOOL|UNIVERSITY|COLLEGE|CLINIC|ACADEMY|INSTITUTE|COURT)\b")
_TOWN = re.compile(
    r"(?<=GREW UP IN )[A-Z]+|(?<=BORN IN )[A-Z]+|(?<=RAISED IN )[A-Z]+|(?<=LIVES IN )[A-Z]+|(?<=LIVED IN )[A-Z]+|(?<=LIVE IN )[A-Z]+|"
    r"(?<=LIVING IN )[A-Z]+|(?<=MOVED TO )[A-Z]+|(?<=MOVED FROM )[A-Z]+|(?<=BASED IN )[A-Z]+|(?<=RESIDENT OF )[A-Z]+"
)
_STATE_CODE = re.compile(r"[A-Z]{2},? \d{5}\b")
_TAIL = re.compile(r"(?<=\d)(?:S|TH|ST|ND|RD)\b")  # the 60S, 3RD
_URGING = frozenset("PLEASE MUST SHOULD CAN NOT THE A AN YOUR THIS".split())
_SMALL = language.FUNCTION_WORDS["en"] | {"in", "am", "up", "so", "no", "do", "my", "me", "us"}
_FEW = 8  # letters: a shorter line is an acronym or a heading
_KNOWN_SHARE = 0.7  # of a line's words that English must know before the rest become names
_ALWAYS = frozenset(
    "mr mrs ms miss dr prof sir herr frau mme mlle sr sra srta hr fru judge january february april june july august "
    "september october november december monday tuesday wednesday thursday friday saturday sunday st ave rd".split()
)


def recase(text: str) -> str:
    """A copy of `text`, equally long, with ordinary capitals."""
    return _LINE.sub(lambda m: _line(m[0]), text)


def is_capitals(line: str) -> bool:
    """Are most letters capitals, and are there enough of them to tell?"""
    letters = [c for c in line if c.isalpha()]
    return len(letters) >= _FEW and sum(c.isupper() for c in letters) >= 0.8 * len(letters)


def _line(line: str) -> str:
    if len(line) < _FEW:
        return line
    if line == line.lower():
        return _raised(line)
    head = line[:40]  # a line in lower case, as most are, is seen at its head
    return _lowered(line) if head.upper() == head and is_capitals(line) else line


def _lowered(line: str) -> str:
    words = list(_WORD.finditer(line))
    kept = [m.span() for p in (_STREET, _FIRM, _TOWN) for m in p.finditer(line)]
    kept += [m.span() for m in _HOUSE.finditer(line) if _named(line, m.start())]
    out, done = [], 0
    for index, match in enumerate(words):
        titled = any(a <= match.start() < b for a, b in kept)
        new = match[0] if _STATE_CODE.match(line, match.start()) else match[0].title() if titled else _prose(line, words, index)
        out += [line[done : match.start()], new if len(new) == len(match[0]) else match[0]]
        done = match.end()
    return _TAIL.sub(lambda m: m[0].lower(), "".join([*out, line[done:]]))


def _prose(line: str, words: list[re.Match[str]], index: int) -> str:
    word = words[index][0]
    lower = word.lower()
    if not word.isupper() or len(lower) != len(word):
        return word
    if len(word) == 1:
        return lower if word == "A" and line[words[index].end() :][:1] == " " else word
    titled = word[0] + lower[1:]
    plain = lexicon.plain(word)
    if plain in _ALWAYS or _in_a_name(line, words, index):
        return titled
    if lexicon.is_common(plain):
        before = line[: words[index].start()].rstrip()
        return titled if not before or before[-1] in ".!?:" else lower
    if len(word) <= 3 and not set(lower) & set("aeiouy"):
        return word
    return titled


def _capital(word: str) -> str:
    return word[0].upper() + word[1:] if len(word[0].upper()) == 1 else word


def _in_a_name(line: str, words: list[re.Match[str]], index: int) -> bool:
    """Does the word stand beside another so that both make a name, as in MARK TAYLOR?"""
    for left, right in ((index - 1, index), (index, index + 1)):
        if left < 0 or right >= len(words) or line[words[left].end() : words[right].start()] not in (" ", "-"):
            continue
        first, last = lexicon.plain(words[left][0]), lexicon.plain(words[right][0])
        if f"{first} {last}" in lexicon.places():
            return True
        if first in lexicon.first_names() and first not in _SMALL and (_surname(first, last) or _stands_alone(line, words, left, right)):
            return True
        if _rare(first) and not lexicon.is_common(last) and len(last) > 3:
            return True
    return False


def _surname(first: str, last: str) -> bool:
    """May `last` be the surname of `first`, which is a given name? One of two ordinary words
    may be a rare one; beside an unmistakable given name any surname will do."""
    if len(last) < 3 or (lexicon.is_common(last) and last not in lexicon.surnames()):
        return False
    if not lexicon.is_common(first):
        return True
    return not _frequent(last) and not (_frequent(first) and lexicon.is_common(last))


def _named(line: str, at: int) -> bool:
    """Is the word in front of `at` one that English does not know, as in ALDWICK HOSPITAL?"""
    words = _WORD.findall(line[max(0, at - 30) : at])
    return bool(words) and not lexicon.is_common(lexicon.plain(words[-1]))


def _rare(plain: str) -> bool:
    return lexicon.common().get(plain, 0) > 12_000


def _stands_alone(line: str, words: list[re.Match[str]], left: int, right: int) -> bool:
    """MARK BROWN: two ordinary words that are names, where no sentence could use the words."""
    if lexicon.plain(words[right][0]) not in lexicon.surnames():
        return False
    if left and words[left - 1][0] in _URGING:
        return False
    after = line[words[right].end() :]
    return re.match(r"\s*(?:[.,;:)?!]|$|(?:AND|IS|WAS|HAS|HAD|WILL|WHO|FROM|AT|ON|SAID|SAYS|LEFT|CAME)\b)", after) is not None


def _frequent(plain: str) -> bool:
    return lexicon.common().get(plain, 1 << 30) < 1500


def _raised(line: str) -> str:
    """Capitals for what English does not know, if it knows most of the line."""
    words = _WORD.findall(line)
    if len(words) < 4:
        return line
    strange = [w for w in words if len(w) > 2 and not lexicon.is_common(lexicon.plain(w))]
    if not strange or len(strange) > (1 - _KNOWN_SHARE) * len(words) or language.guess(line) not in (None, "en"):
        return line
    return _WORD.sub(lambda m: _capital(m[0]) if m[0] in strange or (len(m[0]) == 1 and m[0] not in "ai") else m[0], line)
