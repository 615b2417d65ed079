"""The structure of a mail, with offsets: headers, parts, transfer encodings.

The source is the file decoded as latin-1, so one character is one byte and offsets are byte
offsets. The standard library's `email` package reads single header values; it never writes.
"""

from __future__ import annotations

import base64
import binascii
import quopri
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.header import Header as HeaderWriter
from email.header import decode_header, make_header
from email.message import Message
from email.parser import HeaderParser

from dpredact.documents.source import Escape
from dpredact.errors import DocumentError

FIELD = re.compile(r"([!-9;-~]+)[ \t]*:[ \t]*((?:[^\r\n]|\r?\n[ \t])*)(\r?\n|\r|\Z)")
LINE = re.compile(r"[^\r\n]*(?:\r?\n|\r|\Z)")
BLANK = re.compile(r"\r?\n|\r|\Z")
WORD = r"=\?[^?\s]+\?[bBqQ]\?[^?]*\?="
ENCODED = re.compile(rf"{WORD}(?:\s+{WORD})*|[\x80-\xff]+")
ENCRYPTED = ("multipart/encrypted", "application/pkcs7-mime", "application/x-pkcs7-mime")
DEEPEST = 20  # multiparts in multiparts


@dataclass(frozen=True)
class Field:
    """One header field; `source[at:to]` is its value."""

    name: str
    at: int
    to: int


@dataclass(frozen=True)
class Part:
    """A mail or one of its parts. A leaf has a body; others have parts.

    start: where its headers begin. other: stretches between parts (preamble, epilogue).
    """

    start: int
    fields: tuple[Field, ...]
    headers: Message = field(repr=False)
    at: int
    to: int
    parts: tuple[Part, ...] = ()
    other: tuple[tuple[int, int], ...] = ()

    @property
    def transfer(self) -> str:
        return str(self.headers.get("content-transfer-encoding", "7bit")).strip().lower()

    def field(self, name: str) -> Field | None:
        return next((f for f in self.fields if f.name.lower() == name), None)


def parse(source: str, at: int = 0, to: int | None = None, depth: int = 0) -> Part:
    """The mail in `source[at:to]`. Raises DocumentError for a structure that is not certain."""
    to = len(source) if to is None else to
    if depth > DEEPEST:
        raise DocumentError(f"the mail's parts are nested more than {DEEPEST} deep")
    start, fields = at, []
    if source.startswith("From ", at):  # the first line of an mbox entry
        line = LINE.match(source, at, to)
        fields.append(Field("", at, at + len(line.group().rstrip("\r\n"))))
        at = line.end()
    while found := FIELD.match(source, at, to):
        fields.append(Field(found[1], *found.span(2)))
        at = found.end()
        if found[3] == "":
            break
    blank = BLANK.match(source, at, to)
    if blank is None or not (fields or depth):
        raise DocumentError(
            "this is not a mail: its headers are damaged",
            next_step="give it the suffix .txt to have it read as text",
        )
    body = blank.end()
    headers = HeaderParser().parsestr(source[start:at])
    kind = headers.get_content_type()
    if kind == "message/rfc822" and headers.get("content-transfer-encoding", "7bit").lower() in (
        "7bit", "8bit", "binary",
    ):  # fmt: skip
        return Part(start, tuple(fields), headers, body, to, (parse(source, body, to, depth + 1),))
    if kind in ENCRYPTED:
        raise DocumentError("the mail is encrypted", next_step="save it decrypted and try again")
    if headers.get_content_maintype() != "multipart":
        return Part(start, tuple(fields), headers, body, to)
    boundary = headers.get_boundary()
    if not boundary:
        raise DocumentError("a mail of several parts names no boundary between them")
    ranges, other = _divide(source, body, to, boundary)
    inner = tuple(parse(source, first, last, depth + 1) for first, last in ranges)
    return Part(start, tuple(fields), headers, body, to, inner, other)


def _divide(
    source: str, at: int, to: int, boundary: str
) -> tuple[list[tuple[int, int]], tuple[tuple[int, int], ...]]:
    """The ranges of the parts, and of what stands before and after them."""
    line = re.compile(rf"(?:(?<=\n)|(?<=\r)|\A)--{re.escape(boundary)}(--)?[ \t]*(?:\r?\n|\r|\Z)")
    marks = []
    for mark in line.finditer(source, at, to):
        marks.append(mark)
        if mark[1]:
            break
    if not marks:
        raise DocumentError("a mail of several parts has no part")
    ranges = []
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        if mark[1]:
            break
        last = following.start() if following else to
        if following:  # the line end before a boundary belongs to the boundary
            last -= 2 if source[last - 2 : last] == "\r\n" else 1
        ranges.append((mark.end(), max(last, mark.end())))
    after = marks[-1].end() if marks[-1][1] else to
    return ranges, tuple((a, b) for a, b in ((at, marks[0].start()), (after, to)) if a < b)


def leaves(part: Part) -> Iterator[Part]:
    """Every part, outer ones first."""
    yield part
    for inner in part.parts:
        yield from leaves(inner)


def decoded_body(source: str, part: Part) -> bytes:
    """The body of a leaf without its transfer encoding. Raises DocumentError if damaged."""
    raw = source[part.at : part.to].encode("latin-1")
    if part.transfer in ("7bit", "8bit", "binary", ""):
        return raw
    if part.transfer == "quoted-printable":
        return quopri.decodestring(raw)
    if part.transfer == "base64":
        try:
            return base64.b64decode(b"".join(raw.split()), validate=True)
        except binascii.Error:
            raise DocumentError("a part's base64 is damaged") from None
    raise DocumentError(
        "a part has an unknown transfer encoding", next_step="save the mail's parts as files"
    )


def encoded_body(source: str, part: Part, body: bytes, transfer: str) -> str:
    """`body` in a transfer encoding, with the line ends of the part."""
    raw = source[part.at : part.to]
    line_end = "\r\n" if "\r\n" in raw or "\r\n" in source[:4096] else "\n"
    if transfer == "base64":
        text = base64.encodebytes(body).decode("ascii")
    elif transfer == "quoted-printable":
        lines = body.replace(b"\r\n", b"\n") if line_end == "\r\n" else body
        text = quopri.encodestring(lines).decode("ascii")
    else:
        return body.decode("latin-1")
    text = text.replace("\n", line_end)
    trailing = raw[len(raw.rstrip("\r\n")) :] if transfer == "base64" else None
    return text if trailing is None else text.rstrip("\r\n") + trailing


def readable(raw: str) -> tuple[str, list[Escape]]:
    """What a header value says: encoded words and 8-bit characters read."""
    parts: list[str] = []
    escapes: list[Escape] = []
    length = at = 0
    for match in ENCODED.finditer(raw):
        parts.append(raw[at : match.start()])
        length += match.start() - at
        at = match.end()
        text = _decoded_word(match.group())
        parts.append(text)
        escapes.append(Escape(length, length + len(text), match.start(), match.end()))
        length += len(text)
    return "".join([*parts, raw[at:]]), escapes


def _decoded_word(raw: str) -> str:
    if not raw.startswith("=?"):
        data = raw.encode("latin-1")
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            return raw  # latin-1: what old mail programs wrote
    try:
        return str(make_header(decode_header(raw)))
    except (LookupError, UnicodeError, ValueError, binascii.Error):
        raise DocumentError("a header has words in an unknown encoding") from None


def written(text: str) -> str:
    """New text for a header value: one line, encoded words where it is not ASCII."""
    text = re.sub(r"[\r\n]+[ \t]*", " ", text)
    if text.isascii():
        return text
    return HeaderWriter(text, "utf-8", maxlinelen=10**6).encode()
