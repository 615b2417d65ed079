"""HTML and XML: words go, tags stay byte for byte.

A paragraph is one block with a piece for each text node, so a name over a tag border is one
name. Attributes follow the paragraph as VALUE blocks; scripts, styles and comments are VALUE
blocks too. Entities are read for the taggers and written back where new text needs them.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from pathlib import PurePath

from dpredact.documents import encoding as enc
from dpredact.documents import picture
from dpredact.documents.html_scan import Attribute, Token, readable, tokens
from dpredact.documents.interface import Document, Edit, Kind, Reading
from dpredact.documents.labels import is_prose
from dpredact.documents.source import Builder, SourceDocument, Style
from dpredact.errors import DocumentError

# Elements inside a line of text; every other one begins a new block.
INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark meter "
    "nobr output picture progress q rp rt ruby s samp small source span strike strong sub sup "
    "time tt u var wbr".split()
)
# Their words are prose even when few; in all other elements it depends on the words.
PROSE = frozenset(
    "p li dd dt blockquote h1 h2 h3 h4 h5 h6 div section article main aside figcaption body "
    "summary center".split()
)
VERBATIM = frozenset({"pre", "textarea", "title", "option", "button", "svg", "math", "samp"})
VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())
URLS = frozenset("href src action cite data formaction longdesc poster srcset background".split())
# Attributes for machines. A private value in one of them is found by `unblocked`.
MACHINE = frozenset(
    "class id style for rel type charset lang xml:lang dir role width height colspan rowspan "
    "align valign border cellpadding cellspacing bgcolor color face size http-equiv media method "
    "enctype target tabindex maxlength scope xmlns shape coords integrity crossorigin loading "
    "async defer checked selected disabled readonly required multiple autocomplete headers".split()
)
DATA_URI = re.compile(
    r"data:(?P<media>[\w.+-]+/[\w.+-]+)?[;\w=.+-]*;base64,[A-Za-z0-9+/=%\s]*", re.IGNORECASE
)
META = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]+)", re.IGNORECASE)
XML_DECLARATION = re.compile(rb"\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9_.:-]+)")


def read(data: bytes, name: str, how: Reading) -> Document:
    """An HTML (or, by its suffix, XML) file."""
    html = PurePath(name).suffix.lower() in (".html", ".htm", ".xhtml")
    xml = not html  # the door sends other suffixes here only for XML
    found = XML_DECLARATION.match(data) or META.search(data, 0, 4096)
    declared = how.encoding or (found[1].decode("ascii") if found else None)
    decoded = enc.decode(data, declared=declared)
    builder = Builder()
    always = _embedded(decoded.text, how)
    Walk(builder, decoded.text, xml).run()
    media = "application/xml" if xml else "text/html"
    return MarkupDocument(
        name, media, decoded, builder, escape=_reference,
        plainly=lambda source: readable(source, url=True)[0], always=always,
    )  # fmt: skip


class MarkupDocument(SourceDocument):
    """HTML or XML; says when pictures inside it are blanked."""

    def remarks(self, edits: Sequence[Edit]) -> tuple[str, ...]:
        return (*super().remarks(edits), *((picture.BLANKED,) if self._always else ()))


def _embedded(source: str, how: Reading) -> list[Edit]:
    """Files written into the markup itself: fonts stay, pictures refuse the file or are
    blanked, anything else refuses it: its words would go out unread."""
    edits = []
    for found in DATA_URI.finditer(source):
        media = (found["media"] or "text/plain").lower()
        blank = "data:image/png;base64," + base64.b64encode(picture.BLANK).decode("ascii")
        if "font" in media or found.group() == blank:
            continue
        drawn = media.startswith("image/") and not media.startswith("image/svg")
        if drawn and how.pictures == "blank":
            edits.append(Edit(*found.span(), blank))
            continue
        raise DocumentError(
            "the file holds a picture whose words cannot be read" if drawn
            else "the file holds another file inside an address",
            next_step="take it out first" + (", or ask for blank pictures" if drawn else ""),
            place=f"line {source.count(chr(10), 0, found.start()) + 1}",
        )  # fmt: skip
    return edits


class Walk:
    """One pass over the tokens. Text nodes gather until a block element ends the paragraph."""

    def __init__(self, builder: Builder, source: str, xml: bool) -> None:
        self.builder = builder
        self.source = source
        self.xml = xml
        self.open: list[str] = []
        self.start = 0  # where the paragraph begins in the text
        self.later: list[tuple[int, int, str, Style, str]] = []
        self.line, self.counted = 1, 0

    def run(self) -> None:
        for token in tokens(self.source, xml=self.xml):
            where = self.where(token.at)
            if token.kind == "text":
                self.text(token)
            elif token.kind == "raw" and not token.name:  # CDATA: words without entities
                self.builder.piece(self.source[token.at : token.to], token.at, token.to, RAW["raw"])
            elif token.kind in ("raw", "comment"):
                style = RAW[token.name or token.kind]
                self.later.append((token.at, token.to, "raw", style, where))
            elif token.kind in ("start", "end"):
                self.tag(token, where)
        self.end_paragraph()

    def where(self, at: int) -> str:
        self.line += self.source.count("\n", self.counted, at)
        self.counted = at
        return f"line {self.line}"

    def text(self, token: Token) -> None:
        raw = self.source[token.at : token.to]
        text, escapes = readable(raw)
        self.builder.piece(text, token.at, token.to, TEXT, escapes)

    def tag(self, token: Token, where: str) -> None:
        inline = not self.xml and (token.name in INLINE or ":" in token.name)
        if token.name == "br" and not self.xml:
            self.builder.gap("\n")
        elif not inline:
            self.end_paragraph(cell=token.name in ("td", "th"))
            if token.name == "tr":
                self.builder.gap("\n")
                self.start = self.builder.length
        for attribute in token.attributes:
            if attribute.name in MACHINE or attribute.to == attribute.at:
                continue
            if not DATA_URI.match(self.source, attribute.at):
                kind = "url" if attribute.name in URLS else "attribute"
                self.later.append((attribute.at, attribute.to, kind, _style(attribute), where))
        if not inline and token.name not in VOID:
            self.nest(token)

    def nest(self, token: Token) -> None:
        if token.kind == "start":
            if token.name == "p" and self.open and self.open[-1] == "p":
                self.open.pop()  # a new paragraph ends an open one
            if not self.source.startswith("/>", token.to - 2):
                self.open.append(token.name)
        elif token.name in self.open[-50:]:
            while self.open and self.open.pop() != token.name:
                pass

    def end_paragraph(self, cell: bool = False) -> None:
        text = self.builder.since(self.start)
        if text.strip():
            self.builder.block(self.start, self.kind(text), f"line {self.line}")
            self.builder.gap("\t" if cell else "\n\n")
        later, self.later = self.later, []
        for at, to, kind, style, where in later:
            raw = self.source[at:to]
            text, escapes = raw, ()
            if kind != "raw":
                text, escapes = readable(raw, attribute=True, url=kind == "url")
            if not text.strip():
                continue
            start = self.builder.length
            self.builder.piece(text, at, to, style, escapes)
            self.builder.block(start, Kind.VALUE, where)
            self.builder.gap("\n")
        self.start = self.builder.length

    def kind(self, text: str) -> Kind:
        if any(name in VERBATIM for name in self.open[-8:]):
            return Kind.VALUE
        inside = self.open[-1] if self.open else "body"
        return Kind.PROSE if inside in PROSE and not self.xml or is_prose(text) else Kind.VALUE


def _text(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _style(attribute: Attribute) -> Style:
    url = attribute.name in URLS

    def encode(text: str) -> str:
        if url:
            text = re.sub(r"[\s%\"'<>`]", lambda m: "".join(f"%{b:02X}" for b in m[0].encode()), text)
        text = text.replace("&", "&amp;").replace("<", "&lt;")
        return text.replace('"', "&quot;") if attribute.quote != "'" else text.replace("'", "&#39;")

    def close(value: str) -> str:
        bare = not attribute.quote and (not value or re.search(r"[\s\"'=<>`]", value))
        return f'"{value}"' if bare else value

    return Style(encode, close, read=lambda value: readable(value, attribute=True, url=url)[0])


def _reference(character: str) -> str:
    return f"&#{ord(character)};"


def _said(source: str) -> str:
    """What a text node says; "" if it would hold a tag."""
    return "" if any(token.kind != "text" for token in tokens(source)) else readable(source)[0]


TEXT = Style(encode=_text, read=_said)
RAW = {
    "comment": Style(encode=lambda text: text.replace("--", "- -").replace(">", " ")),
    "raw": Style(encode=lambda text: text.replace("]]>", "]] >")),
}
for _name in ("script", "style", "xmp", "iframe", "noembed", "noframes", "plaintext"):
    RAW[_name] = Style(encode=lambda text: text.replace("</", "< /"))
