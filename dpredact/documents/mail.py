"""Mails (.eml): headers, bodies and attachments, each read by the reader for its format.

A mail without edits keeps every byte. A changed part is written again in its own transfer
encoding; its headers change only if new text needs another charset or 8-bit characters.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from pathlib import PurePath

from dpredact.documents.html_scan import percent_decoded
from dpredact.documents.interface import Block, Document, Edit, Kind, Reading, replaced
from dpredact.documents.mail_scan import (
    Field, Part, decoded_body, encoded_body, leaves, parse, readable, written,
)  # fmt: skip
from dpredact.documents.source import (
    Builder, Child, Escape, Local, Style, adopt, assign, rewritten, shared_out,
)  # fmt: skip
from dpredact.errors import DocumentError

# Headers for machines: only the file names in them are text.
MACHINE = frozenset({"content-type", "content-transfer-encoding", "content-disposition",
                     "mime-version", "content-length", "lines"})  # fmt: skip
KNOWN = frozenset(
    "from to cc bcc reply-to sender subject date message-id in-reply-to references received "
    "return-path delivered-to list-id thread-topic comments keywords organization user-agent "
    "x-mailer x-originating-ip".split()
)
FILE_NAME = re.compile(
    r"(?:file)?name(?P<star>\*(?:\d+\*?)?)?\s*=\s*(?:\"(?P<quoted>(?:[^\"\\]|\\.)*)\"|(?P<bare>[^\s;\"]+))",
    re.IGNORECASE,
)
CHARSET = re.compile(r"(charset\s*=\s*\"?)([^\s\";]+)", re.IGNORECASE)
SUFFIX = {
    "text/plain": ".txt", "text/html": ".html", "text/csv": ".csv", "text/markdown": ".md",
    "text/tab-separated-values": ".tsv", "application/json": ".json", "text/xml": ".xml",
    "application/xml": ".xml", "application/pdf": ".pdf", "message/rfc822": ".eml",
    "text/rfc822-headers": ".log", "message/delivery-status": ".log", "text/calendar": ".ics",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
}  # fmt: skip
ADDRESSES = frozenset("from to cc bcc reply-to sender return-path delivered-to".split())
HEADER = Style(encode=written)
ADDRESS = Style(encode=written, close=lambda value: _phrases(value))
WORD_BEFORE = re.compile(r"[^\s<>,;:\"()@]*\Z")
WORD_AFTER = re.compile(r"[^\s<>,;:\"()@]*")
SPACE = re.compile(r"\s*")
QUOTED = Style(encode=lambda text: written(text).replace("\\", "\\\\").replace('"', '\\"'))
PERCENT = Style(
    encode=lambda text: "".join(
        c if c.isalnum() and c.isascii() or c in "-._" else "".join(f"%{b:02X}" for b in c.encode())
        for c in text
    )
)


def read(data: bytes, name: str, how: Reading) -> Document:
    """A mail with all its parts. A part that cannot be read, or not written back, refuses it."""
    source = data.decode("latin-1")
    builder = Builder()
    children: list[Child] = []
    blocks: list[Block] = []
    for number, part in enumerate(leaves(parse(source)), start=0):
        place = f"part {number}" if number else ""
        for count, field in enumerate(part.fields, start=1):
            _header(builder, source, field, f"{place}, header {count}".strip(", "))
        for first, last in part.other:
            _literal(builder, source, first, last, f"{place}, between parts".strip(", "))
        if part.parts or part.headers.get_content_maintype() == "multipart":
            continue
        child = _leaf(source, part, place or "body", how)
        builder.gap("\n")
        adopted, inner = adopt(builder, child, part, place or "body")
        children.append(adopted)
        blocks += inner
        builder.gap("\n\n")
    return MailDocument(name, source, builder, children, blocks)


def _leaf(source: str, part: Part, place: str, how: Reading) -> Document:
    from dpredact.documents import read as read_any

    kind = part.headers.get_content_type()
    try:
        body = decoded_body(source, part)
        suffix = SUFFIX.get(kind) or PurePath(str(part.headers.get_filename() or "")).suffix
        if not re.fullmatch(r"\.[A-Za-z0-9]{1,8}", suffix):
            suffix = ".txt" if part.headers.get_content_maintype() == "text" else ".bin"
        charset = part.headers.get_content_charset() if kind.startswith("text/") else None
        document = read_any(body, "attachment" + suffix, how.inside(charset))
        if document.output_name != document.name:
            raise DocumentError(
                "an attachment can be read but not written back",
                next_step="take the attachment out of the mail and give it by itself",
            )
    except DocumentError as error:
        inside = error.place.partition(", ")[2]
        place = f"{place}, {inside}" if inside else place
        raise DocumentError(error.message, next_step=error.next_step, place=place) from None
    return document


def _header(builder: Builder, source: str, field: Field, where: str) -> None:
    name = field.name.lower()
    if name in MACHINE:
        for match in FILE_NAME.finditer(source, field.at, field.to):
            _file_name(builder, source, match, where)
        return
    text, escapes = readable(source[field.at : field.to])
    if not text.strip():
        return
    if name in KNOWN:
        builder.gap(f"{field.name}: ")
        where = f"{where} ({field.name})"
    start = builder.length
    style = ADDRESS if name in ADDRESSES else HEADER
    builder.piece(text, field.at, field.to, style, escapes)
    builder.block(start, Kind.VALUE, where)
    builder.gap("\n")


def _file_name(builder: Builder, source: str, match: re.Match[str], where: str) -> None:
    at, to = match.span("quoted" if match["quoted"] is not None else "bare")
    raw = source[at:to]
    style = QUOTED if match["quoted"] is not None else Style(encode=written, close=_token)
    text, escapes = readable(raw)
    if match["star"] and match["star"].endswith("*"):
        head = re.match(r"[^'%]*'[^'%]*'", raw)  # charset'language'
        at += head.end() if head else 0
        style = PERCENT
        text, escapes = percent_decoded(source[at:to], [])
    start = builder.length
    builder.piece(text, at, to, style, escapes)
    builder.block(start, Kind.VALUE, f"{where}, file name")
    builder.gap("\n")


def _token(value: str) -> str:
    return value if re.fullmatch(r"[\w.!#$&+^-]+", value) else f'"{QUOTED.encode(value)}"'


def _literal(builder: Builder, source: str, first: int, last: int, where: str) -> None:
    text, escapes = readable(source[first:last])
    if text.strip():
        start = builder.length
        builder.piece(text, first, last, Style(), escapes)
        builder.block(start, Kind.VALUE, where)
        builder.gap("\n")


def _apart(text: str, escapes: Sequence[Escape], local: Sequence[Local]) -> list[Local]:
    """The edits of a header, grown where they will become encoded words.

    Encoded words side by side lose the space between them, and one that touches other
    characters is not read by every program: so an edit with characters outside ASCII takes in
    the rest of its word, and an encoded word next to it.
    """
    groups: list[tuple[int, int, bool, list[Edit]]] = []
    for start, end, new in local:
        left, right, plain = start, end, new.isascii()
        if not plain:
            left = WORD_BEFORE.search(text, 0, start).start()
            right = WORD_AFTER.match(text, end).end()
            before, after = len(text[:left].rstrip()), SPACE.match(text, right).end()
            left = next((e.start for e in escapes if e.end == before), left)
            right = next((e.end for e in escapes if e.start == after), right)
        joined = [Edit(start, end, new)]
        if groups:
            first, last, was_plain, edits = groups[-1]
            side_by_side = not (plain or was_plain) and not text[last:left].strip()
            if left < last or side_by_side:
                groups.pop()
                left, right, plain = first, max(last, right), plain and was_plain
                joined = [*edits, *joined]
        groups.append((left, right, plain, joined))
    return [
        (left, right, replaced(
            text[left:right], [Edit(e.start - left, e.end - left, e.text) for e in edits]
        ))
        for left, right, _, edits in groups
    ]  # fmt: skip


def _phrases(value: str) -> str:
    """In a list of addresses, brackets in a name stand in quotes: '"[PERSON]" <a@b>'."""
    if '"' in value:
        return value
    return re.sub(r"\[[^\[\]<>,]*\](?=[^<>,;@]*<)", lambda found: f'"{found[0]}"', value)


class MailDocument(Document):
    """A mail: pieces of its headers, and a document for each body and attachment."""

    media_type = "message/rfc822"

    def __init__(
        self, name: str, source: str, builder: Builder, children: list[Child], blocks: list[Block]
    ) -> None:
        self.name = name
        self.text = builder.text()
        self.blocks = tuple(sorted([*builder.finished(self.text), *blocks], key=lambda b: b.start))
        self._source = source
        self._pieces = builder.pieces
        self._children = children

    def render(self, edits: Sequence[Edit]) -> bytes:
        replaced(self.text, edits)  # sorted, disjoint, inside
        own, inside = shared_out(edits, self._children)
        changed: list[Edit] = []
        borders = [(piece.start, piece.end) for piece in self._pieces]
        for number, local in assign(own, borders, self.blocks).items():
            piece = self._pieces[number]
            raw = self._source[piece.at : piece.to]
            text = self.text[piece.start : piece.end]
            if piece.style in (HEADER, ADDRESS):
                local = _apart(text, piece.escapes, local)
            new = rewritten(raw, text, piece, local)
            changed.append(Edit(piece.at, piece.to, new))
        for child, moved in zip(self._children, inside, strict=True):
            new = child.document.render(moved)
            if new != decoded_body(self._source, child.key):
                changed += _written_back(self._source, child, new)
        changed.sort(key=lambda edit: (edit.start, edit.end))
        return replaced(self._source, changed).encode("latin-1")

    def unblocked(self) -> str:
        covered = [(p.at, p.to) for p in self._pieces]
        covered += [(child.key.at, child.key.to) for child in self._children]
        gaps, at = [], 0
        for first, last in sorted(covered):
            gaps.append(self._source[at:first])
            at = last
        gaps.append(self._source[at:])
        gaps += [child.document.unblocked() for child in self._children]
        return "\n".join(gap for gap in gaps if gap.strip())

    def remarks(self, edits: Sequence[Edit]) -> tuple[str, ...]:
        _, inside = shared_out(edits, self._children)
        found: list[str] = []
        for child, moved in zip(self._children, inside, strict=True):
            found += [r for r in child.document.remarks(moved) if r not in found]
        return tuple(found)


def _written_back(source: str, child: Child, new: bytes) -> list[Edit]:
    """Edits of the source that put a leaf's new body in place, and what its headers must say."""
    part: Part = child.key
    edits: list[Edit] = []
    transfer = part.transfer
    if part.headers.get_content_maintype() == "text" and not new.isascii():
        charset = getattr(child.document, "encoding", "utf-8")
        if new.startswith(codecs.BOM_UTF8) and charset != "utf-8":
            new, charset = new.removeprefix(codecs.BOM_UTF8), "utf-8"
        declared = part.headers.get_content_charset() or ""
        if _python_name(declared) != _python_name(charset):
            edits.append(_charset_edit(source, part, charset))
        if transfer in ("7bit", ""):
            transfer = "quoted-printable"
            field = part.field("content-transfer-encoding")
            edits.append(
                Edit(field.at, field.to, transfer) if field
                else _new_field(source, part, f"Content-Transfer-Encoding: {transfer}")
            )  # fmt: skip
    return [*edits, Edit(part.at, part.to, encoded_body(source, part, new, transfer))]


def _python_name(charset: str) -> str:
    try:
        return {"iso8859-1": "cp1252"}.get(name := codecs.lookup(charset).name, name)
    except LookupError:
        return charset


def _charset_edit(source: str, part: Part, charset: str) -> Edit:
    field = part.field("content-type")
    if field is None:
        return _new_field(source, part, f"Content-Type: text/plain; charset={charset}")
    if found := CHARSET.search(source, field.at, field.to):
        return Edit(*found.span(2), charset)
    return Edit(field.to, field.to, f"; charset={charset}")


def _new_field(source: str, part: Part, line: str) -> Edit:
    line_end = "\r\n" if "\r\n" in source[:4096] else "\n"
    at = part.fields[-1].to if part.fields else part.start
    return Edit(at, at, f"{line_end}{line}" if part.fields else f"{line}{line_end}")
