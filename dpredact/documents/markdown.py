"""The blocks of a Markdown text: prose is PROSE, what a renderer obeys is VALUE or in no block.

VALUE (changed span by span): front matter, code, tables, HTML lines, link labels, link and
image targets, reference definitions. In no block: fences, list marks, heading marks, quote
marks, brackets of links. So a rewritten paragraph keeps its links and its place in a list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dpredact.documents.interface import Block, Kind
from dpredact.documents.plain import paragraphs

LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
FENCE = re.compile(r"[ >\t]*(`{3,}|~{3,})([^\r\n]*)")
# What stands before the words of a line: quote marks, list marks, heading marks, task boxes.
PREFIX = re.compile(r"(?:[ \t]*(?:>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t])))*[ \t]*"
                    r"(?:#{1,6}(?=[ \t]))?[ \t]*(?:\[[ xX]\][ \t]+)?")  # fmt: skip
RULE = re.compile(r"[ \t]*(?:=+|-+|(?:[-*_][ \t]*){3,})[ \t]*\Z")
DEFINITION = re.compile(r"[ ]{0,3}\[[^\]\r\n]+\]:")
MARKED = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]")  # an item of a nested list
INDENTED = re.compile(r"(?: {4}|\t)")
LINK = re.compile(
    r"!?\[(?P<label>[^\[\]\r\n]*)\]\((?P<target>[^()\r\n]*(?:\([^()\r\n]*\)[^()\r\n]*)*)\)"
    r"|<(?P<auto>(?:https?|mailto|ftp|tel):[^<>\s]+|[^<>\s@]+@[^<>\s@]+)>"
)


def blocks(text: str) -> tuple[Block, ...]:
    """The blocks of a Markdown text, sorted and disjoint."""
    return tuple(_blocks(text))


def _blocks(text: str) -> Iterator[Block]:
    lines = [(m.start(), m.end()) for m in LINE.finditer(text) if m.end() > m.start()]
    front = _front_matter_end(text, lines)
    if front:
        yield from _value(text, lines[1][0], lines[front - 1][0], "front matter", 2)
    fence = ""
    opened = (0, 0)  # offset and line number where the code began
    run: tuple[int, int, int] | None = None  # start, end, line number of a growing paragraph
    blank_before = True
    for number, (first, last) in enumerate(lines[front:], start=front + 1):
        line = text[first:last]
        mark = FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                yield from _value(text, opened[0], first, "code", opened[1])
                fence = ""
            continue
        if mark and mark[1][0] == "`" and "`" in mark[2]:
            mark = None  # inline code that begins a paragraph
        head = PREFIX.match(line).end()
        markup = _markup(line, blank_before)
        blank_before = not line.strip()
        plain = not (mark or blank_before or markup or line[:head].strip())
        if run and not plain:
            yield from _prose(text, *run)
            run = None
        if mark:
            fence, opened = mark[1], (last, number + 1)
        elif markup:
            yield from _value(text, first, last, "markup", number)
        elif plain and run:
            run = (run[0], last, run[2])
        elif not blank_before:
            run = (first + head, last, number)
    if fence:
        yield from _value(text, opened[0], len(text), "code", opened[1])
    if run:
        yield from _prose(text, *run)


def _front_matter_end(text: str, lines: list[tuple[int, int]]) -> int:
    """Number of lines that the front matter takes, fences included; 0 if there is none."""
    if not lines or text[slice(*lines[0])].rstrip() not in ("---", "+++"):
        return 0
    mark = text[slice(*lines[0])].rstrip()
    for number, (first, last) in enumerate(lines[1:], start=2):
        if text[first:last].rstrip() in (mark, "..." if mark == "---" else mark):
            return number
    return 0


def _markup(line: str, blank_before: bool) -> bool:
    """Is this line for the renderer: a rule, a definition, a table row, HTML, indented code?"""
    words = line.strip()
    return bool(
        RULE.match(line.rstrip("\r\n"))
        or DEFINITION.match(line)
        or words.startswith("|")
        or (words.startswith("<") and not LINK.match(words))
        or (words and blank_before and INDENTED.match(line) and not MARKED.match(words))
    )


def _value(text: str, start: int, end: int, where: str, line: int) -> Iterator[Block]:
    for block in paragraphs(text, Kind.VALUE, start, end, line):
        yield Block(block.start, block.end, Kind.VALUE, f"{where}, {block.where}")


def _prose(text: str, start: int, end: int, line: int) -> Iterator[Block]:
    """A paragraph, cut around the labels and targets of its links."""
    at = start
    for match in LINK.finditer(text, start, end):
        yield from paragraphs(text, Kind.PROSE, at, match.start(), line)
        line += text.count("\n", at, match.end())
        for part in ("label", "target", "auto"):
            if match[part] is not None:
                yield from _value(text, match.start(part), match.end(part), "link", line)
        at = match.end()
    yield from paragraphs(text, Kind.PROSE, at, end, line)
