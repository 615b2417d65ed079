"""Reading lines that are written in capitals, and findings that run over a line break.

A name finder that was trained on newspapers is blind in a line of capitals. It is given a
copy of the same length in ordinary letters, so offsets stay those of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from dpredact.tagging.interface import Span

_LINE = re.compile(r"[^\r\n]+")
_WORD = re.compile(r"[^\W\d_]+")
_FEW = 8  # letters: a shorter line is an acronym or a heading, not a sentence


def is_capitals(line: str) -> bool:
    """Are at least nine of ten letters capitals, and are there enough of them to tell?"""
    letters = [c for c in line if c.isalpha()]
    return len(letters) >= _FEW and sum(c.isupper() for c in letters) >= 0.9 * len(letters)


def capital_lines(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of every line that is written in capitals."""
    for line in _LINE.finditer(text):
        if is_capitals(line[0]):
            yield line.span()


def titled_capitals(text: str) -> str:
    """A copy of the same length: lines of capitals in title case, other lines untouched."""
    return _LINE.sub(lambda m: _title(m[0]) if is_capitals(m[0]) else m[0], text)


def _title(line: str) -> str:
    return _WORD.sub(lambda w: w[0][0] + lowered(w[0][1:]) if len(w[0]) > 2 else w[0], line)


def lowered(text: str) -> str:
    """Lower case, one code point for one."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def in_capitals(text: str, span: Span) -> bool:
    """Does `span` lie in a line of capitals?"""
    start = max(text.rfind("\n", 0, span.start), text.rfind("\r", 0, span.start)) + 1
    line = _LINE.match(text, start)
    return line is not None and is_capitals(line[0])


def split_at_lines(text: str, span: Span) -> Iterator[Span]:
    """The pieces of `span` on each line, without white space at their ends.

    A later line that goes on with a colon is the label of the next field ("HANDLER:"),
    which a finder without layout takes for more of the name: it is left out.
    """
    for number, line in enumerate(_LINE.finditer(text, span.start, span.end)):
        start, end = line.span()
        while start < end and text[start].isspace():
            start += 1
        while start < end and text[end - 1].isspace():
            end -= 1
        if start == end or (number and text[end : end + 1] == ":"):
            continue
        yield replace(span, start=start, end=end)
