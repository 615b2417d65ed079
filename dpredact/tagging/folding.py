"""A folded copy of a text for the taggers to read, with an exact map back.

Text as it comes hides words: zero-width characters inside an address, full-width and
look-alike letters, accents as separate marks, `%40`, a name broken over two lines. The
taggers read a copy without these; spans are cut from the original.

A `Folded` text is a list of segments. In a *same* segment both sides are equal, letter for
letter; any other segment maps as a whole. So a span always comes back with all the marks
that belong to its letters, and nothing of its neighbours.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass, field

import regex

# Letters of other scripts that look like a Latin one. Applied only to words that mix
# scripts, so that real Greek or Russian stays as it is.
LOOK_ALIKES = str.maketrans(
    "АВЕЅІЈКМНОРСТХУаеѕіјорсхуһԁԛԝв"  # Cyrillic
    "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαικνορυχ"  # Greek
    "օսոց",  # Armenian
    "ABESIJKMHOPCTXYaesijopcxyhdqwb" "ABEZHIKMNOPTYXaikvopux" "oung",
)
_DASHES = dict.fromkeys("‐‑‒−﹣－", "-")
_INVISIBLE = "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff"

_SPACES = r"[ \t]{2,}|[ \t]+(?=\r?\n|\r)|\r\n?"
_ASCII = re.compile(
    rf"(?P<hyphen>(?<=[A-Za-z])-\r?\n[ \t]*(?=[A-Za-z]))|(?P<percent>(?:%[0-9A-Fa-f]{{2}})+)|{_SPACES}"
)
_ANY = regex.compile(
    r"(?P<hyphen>(?<=[^\W\d_])[-\u00ad\u2010]\r?\n[ \t]*(?=[^\W\d_]))"
    r"|(?P<percent>(?:%[0-9A-Fa-f]{2})+)"
    rf"|[ \t\p{{Zs}}]{{2,}}|[ \t\p{{Zs}}]+(?=\r?\n|\r)|\r\n?"
    r"|(?P<emoji>(?![©®™])\p{Extended_Pictographic}[\p{M}\u200d\ufe0f\U0001f3fb-\U0001f3ff\p{Extended_Pictographic}]* ?)"
    rf"|[{_INVISIBLE}]+|[A-Za-z]\p{{M}}+|[^\x00-\x7f]\p{{M}}*"
)
_WORD = re.compile(r"[^\W\d_]+")
_OTHER_SCRIPT = re.compile("[\u0370-\u03ff\u0400-\u04ff\u0500-\u052f\u0531-\u058f]")


@dataclass(frozen=True)
class Folded:
    """The copy (`text`) and its map to the original. Holds private text; its repr does not."""

    text: str = field(repr=False)
    length: int  # of the original, in code points
    # Per segment that left something in the copy: where it starts in the copy and in the
    # original, where it ends in the original, and whether both sides are the same letters.
    _copy: tuple[int, ...] = field(repr=False)
    _start: tuple[int, ...] = field(repr=False)
    _end: tuple[int, ...] = field(repr=False)
    _same: tuple[bool, ...] = field(repr=False)

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Where the non-empty span [start, end) of the copy lies in the original."""
        first = bisect_right(self._copy, start) - 1
        last = bisect_right(self._copy, end - 1) - 1
        low, high = self._start[first], self._end[last]
        if self._same[first]:
            low += start - self._copy[first]
        if self._same[last]:
            high = self._start[last] + end - self._copy[last]
        return low, high

    def copy(self, start: int, end: int) -> tuple[int, int]:
        """The part of the copy that stems from [start, end) of the original; may be empty."""
        return self._at(start), self._at(end)

    def _at(self, offset: int) -> int:
        """The first place of the copy whose original starts at `offset` or later."""
        index = bisect_right(self._start, offset) - 1
        if index < 0:
            return 0
        if self._same[index]:
            if offset < self._end[index]:
                return self._copy[index] + offset - self._start[index]
        elif offset == self._start[index]:
            return self._copy[index]
        return self._copy[index + 1] if index + 1 < len(self._copy) else len(self.text)


def fold(text: str) -> Folded:
    """The folded copy of `text`. Never longer than needed for compatibility letters.

    Edges: "" -> "" · a text without anything to fold -> itself
    """
    lookalikes = _mixed_script(text)
    pieces: list[str] = []
    copy: list[int] = []
    start: list[int] = []
    end: list[int] = []
    same: list[bool] = []
    length = done = 0

    def add(piece: str, low: int, high: int, equal: bool) -> None:
        nonlocal length
        if piece:
            pieces.append(piece)
            copy.append(length)
            start.append(low)
            end.append(high)
            same.append(equal)
            length += len(piece)

    for match in (_ASCII if text.isascii() else _ANY).finditer(text):
        low, high = match.span()
        piece = _replacement(text, match, lookalikes)
        if piece == text[low:high]:
            continue
        add(text[done:low], done, low, True)
        add(piece, low, high, False)
        done = high
    add(text[done:], done, len(text), True)
    folded = _unwrap("".join(pieces))
    return Folded(folded, len(text), tuple(copy), tuple(start), tuple(end), tuple(same))


def _replacement(text: str, match: re.Match[str], lookalikes: set[int]) -> str:
    """What stands in the copy for one match of the scanner."""
    found = match[0]
    if match["hyphen"]:
        # Brenn-/wald was cut by the typesetter; Aldwick-/Stone has a hyphen of its own.
        return "-" if text[match.end()].isupper() and found[0] != "\u00ad" else ""
    if match["percent"]:
        return _decoded(found)
    if "emoji" in match.re.groupindex and match["emoji"]:
        return _emoji(text, *match.span())
    if found[0] == "\r":
        return "\n"
    if found.isspace():
        after = text[match.end() : match.end() + 1]
        if after in ("\n", "\r"):
            return ""
        return "\t" if "\t" in found else " "
    if regex.fullmatch(f"[{_INVISIBLE}]+", found):
        return ""
    if match.start() in lookalikes:
        found = found.translate(LOOK_ALIKES)
    whole = unicodedata.normalize("NFKC", found)
    if len(whole) == 1 and whole.isdecimal():
        return str(unicodedata.decimal(whole))
    if whole.isspace():
        return " " if whole != "\u2028" and whole != "\u2029" and whole != "\x85" else "\n"
    return "".join(_DASHES.get(c, c) for c in whole)


def _emoji(text: str, start: int, end: int) -> str:
    """An emoji leaves nothing where white space or an end stands beside it, else a blank."""
    if start == 0 or text[start - 1].isspace():
        return ""
    return " " if end < len(text) and (text[end - 1] == " " or text[end].isalnum()) else ""


def _decoded(run: str) -> str:
    """`%40` as `@`, if the bytes are printable text; otherwise the run itself."""
    try:
        plain = bytes.fromhex(run.replace("%", "")).decode("utf-8")
    except UnicodeDecodeError:
        return run
    return plain if plain.isprintable() else run


def _mixed_script(text: str) -> set[int]:
    """Offsets of look-alike letters in words that also hold Latin letters."""
    found: set[int] = set()
    if text.isascii() or not _OTHER_SCRIPT.search(text):
        return found
    for word in _WORD.finditer(text):
        foreign = [m.start() + word.start() for m in _OTHER_SCRIPT.finditer(word[0])]
        if foreign and re.search("[A-Za-z\u00c0-\u024f]", word[0]):
            found.update(foreign)
    return found


# -- line breaks inside prose ------------------------------------------------------------

_LONG = 50  # a line of this many characters was broken by its width, not by its author
_FIELD = re.compile(r"\s*(?:[-*•·–>|#]|\d+[.)]\s|[^\W\d_][^:\n]{0,30}:(?!//))|\t")
_OPEN_END = re.compile(
    r"(?:\b(?:a|an|the|of|to|by|for|from|with|and|or|in|at|on|is|was|are|were|that|which|who|"
    r"his|her|their|our|my|your|de|la|le|el|von|van|der|und|et|y|og|af|med|til|con|para|por|"
    r"mit|für|avec|pour|par|du|des|del|mr|mrs|ms|dr)\.?|,)$",
    re.IGNORECASE,
)


def _unwrap(text: str) -> str:
    """Single line breaks that only end a line of prose become blanks; the length stays.

    A break is one if the next line goes on in lower case, or this line ends in a word that
    asks for more, or is long. One-word lines between two such lines belong to them.
    Breaks at labels (`Name: …`), bullets, tabs and blank lines always stay.
    """
    if "\n" not in text:
        return text
    lines = text.split("\n")
    kinds = [_joins(lines[i], lines[i + 1]) for i in range(len(lines) - 1)]
    for i in range(1, len(kinds) - 1):
        if kinds[i] is None and _word_line(lines[i]) and _word_line(lines[i + 1]):
            kinds[i] = bool(kinds[i - 1]) and bool(kinds[i + 1])
    out = [lines[0]]
    for joins, line in zip(kinds, lines[1:], strict=True):
        out.append(" " if joins else "\n")
        out.append(line)
    return "".join(out)


def _word_line(line: str) -> bool:
    return line.strip().isalpha()


def _joins(line: str, after: str) -> bool | None:
    """Does prose go on over this break? None: perhaps, if the lines around it do."""
    if not line or not after or not after[0].isalnum() or _FIELD.match(line) or _FIELD.match(after):
        return False
    if line[-1] in ".!?:;":
        return False
    if after[0].islower() or _OPEN_END.search(line):
        return True
    if len(line) >= _LONG and (line[-1].isalnum() or line[-1] == ","):
        return True
    return None if line[-1].isalnum() else False


