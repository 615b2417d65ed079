"""Where the words are in an Office XML part: paragraphs, fields, attributes, anything else.

Works on element trees that office.py has parsed. Every text of every element becomes a piece,
whether its element is known or not; known elements decide only how pieces join to paragraphs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dpredact.documents.html_scan import percent_decoded
from dpredact.documents.interface import Kind
from dpredact.documents.labels import is_prose
from dpredact.documents.source import Builder, Style

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
STRICT = "http://purl.oclc.org/ooxml/"

PARAGRAPHS = frozenset({W + "p", A + "p", S + "si", S + "is"})
WORDS = frozenset({W + "t", A + "t", S + "t", M + "t"})
DELETED = frozenset({W + "del", W + "moveFrom"})
TABS = (W + "tab", W + "ptab")  # inside w:tabs they are settings
MARKS = {TABS[0]: "\t", TABS[1]: "\t", W + "br": "\n", W + "cr": "\n", A + "br": "\n", W + "noBreakHyphen": "\u2011"}
# Numbers that place a drawing; not words.
GEOMETRY = frozenset("posOffset pctPosHOffset pctPosVOffset pctWidth pctHeight align".split())
# (element, attribute) by local name; None: on any element. All others are for machines.
TEXT_ATTRIBUTES = frozenset(
    [(None, name) for name in ("descr", "alt", "tooltip", "instr", "author", "initials", "userId",
                               "displayText", "string", "href")]
    + [(element, "val") for element in (
        "alias", "tag", "docVar", "default", "listEntry", "statusText", "helpText", "query",
        "connectString", "mailSubject", "addressFieldName", "headerSource", "attachedSchema",
        "category", "description", "saveThroughXslt", "result", "attr")]
    + [("docVar", "name"), ("bookmarkStart", "name"), ("hyperlink", "anchor"), ("docPr", "name"),
       ("docPr", "title"), ("cNvPr", "name"), ("cNvPr", "title"), ("shape", "title"),
       ("imagedata", "title"), ("listItem", "value"), ("property", "name"), ("sheet", "name"),
       ("presenceInfo", "providerId"), ("date", "fullDate"), ("hyperlink", "display"),
       ("hyperlink", "location"), ("definedName", "name"), ("definedName", "comment"),
       ("cacheField", "name"), ("s", "v"), ("tableColumn", "name"), ("table", "displayName")]
)  # fmt: skip
# Properties that programs count or set for themselves.
COUNTED = frozenset(
    "Application AppVersion TotalTime Pages Words Characters CharactersWithSpaces Lines Slides "
    "Paragraphs DocSecurity ScaleCrop LinksUpToDate SharedDoc HyperlinksChanged revision created "
    "modified lastPrinted i4 bool".split()
)
PROSE_PARTS = ("document", "footnotes", "endnotes", "comments")


def local(name: Any) -> str:
    """An element's or attribute's name without its namespace; "" for comments."""
    return name.rpartition("}")[2] if isinstance(name, str) else ""


def percent_encoded(text: str) -> str:
    """New text for a link target: everything but letters, digits and the marks of a URL."""
    keep = "-._~:/?#@!$&'()*+,;="
    return "".join(
        c if c.isascii() and (c.isalnum() or c in keep) else "".join(f"%{b:02X}" for b in c.encode())
        for c in text
    )


WORD_STYLE = Style()
LINK = Style(encode=percent_encoded)


@dataclass(frozen=True)
class Slot:
    """Where a piece stands: the n-th node of a part in document order, and its 'text', 'tail'
    or attribute (by full name)."""

    part: str
    node: int
    slot: str


@dataclass
class Walk:
    """One part. Call `run`; pieces and blocks go to the builder, their places to `slots`,
    the offsets and places of line breaks and tabs to `marks`."""

    builder: Builder
    slots: list[Slot]
    marks: list[tuple[int, Slot]]
    part: str
    where: str
    nodes: dict[Any, int] = field(default_factory=dict)
    count: int = 0
    prose: bool = False

    def run(self, root: Any) -> None:
        self.nodes = {node: number for number, node in enumerate(root.iter())}
        stem = self.part.rpartition("/")[2].partition(".")[0].rstrip("0123456789")
        self.prose = stem in PROSE_PARTS and root.tag.startswith((W, "{" + STRICT))
        self.walk(root, in_table=False)

    def walk(self, element: Any, in_table: bool) -> None:
        """Paragraphs below `element`, and any text that stands in none."""
        if element.tag in PARAGRAPHS:
            self.paragraph(element, in_table)
            return
        self.attributes(element)
        counted = self.part.startswith("docProps/") and local(element.tag) in COUNTED
        if not counted and local(element.tag) not in GEOMETRY and not _shared_string(element):
            self.single(element, "text", element.text)
        for child in element:
            self.walk(child, in_table or element.tag == W + "tbl")
            self.single(child, "tail", child.tail)

    def paragraph(self, paragraph: Any, in_table: bool) -> None:
        """One block of the words that stay, then deleted words, field codes, inner boxes."""
        self.count += 1
        lines: dict[str, list[Any]] = {"deleted": [], "field": [], "other": []}
        start = self.builder.length
        for item in _runs(paragraph, lines):
            if item.tag not in WORDS:
                self.marks.append((self.builder.length, Slot(self.part, self.nodes[item], "mark")))
                self.builder.gap(MARKS[item.tag])
            elif item.text:
                self.piece(item, "text", item.text)
        text = self.builder.since(start)
        if text.strip():
            free = is_prose(text) or (self.prose and not in_table)
            kind = Kind.PROSE if free else Kind.VALUE
            self.builder.block(start, kind, f"{self.where}, paragraph {self.count}")
            self.builder.gap("\n" if in_table else "\n\n")
        for name in ("deleted", "field"):
            self.joined(lines[name], f"{self.where}, paragraph {self.count}, {name}")
        for element in paragraph.iter():
            if element is not paragraph and _inside_inner(element.getparent(), paragraph):
                continue
            if element is not paragraph:
                self.single(element, "tail", element.tail)
            if element is paragraph or element.tag not in PARAGRAPHS:
                self.attributes(element)
                if not isinstance(element.tag, str):
                    self.single(element, "text", element.text)
        for element in lines["other"]:
            if element.tag in PARAGRAPHS:
                self.paragraph(element, in_table)
            else:
                self.single(element, "text", element.text)

    def joined(self, elements: list[Any], where: str) -> None:
        start = self.builder.length
        for element in elements:
            if element.text:
                self.piece(element, "text", element.text)
        if self.builder.length > start:
            self.builder.block(start, Kind.VALUE, where)
            self.builder.gap("\n")

    def single(self, element: Any, slot: str, text: str | None) -> None:
        """A text on its own. Empty and white texts are layout."""
        if not text or not text.strip():
            return
        start = self.builder.length
        self.piece(element, slot, text)
        self.builder.block(start, Kind.VALUE, self.where)
        self.builder.gap("\n")

    def attributes(self, element: Any) -> None:
        if not isinstance(element.tag, str):
            return
        name = local(element.tag)
        for attribute, value in element.attrib.items():
            short = local("}" + attribute)
            link = name == "Relationship" and short == "Target"
            if link and element.get("TargetMode") != "External":
                continue
            if link or (None, short) in TEXT_ATTRIBUTES or (name, short) in TEXT_ATTRIBUTES:
                if value.strip():
                    start = self.builder.length
                    self.piece(element, attribute, value, link=link)
                    self.builder.block(start, Kind.VALUE, f"{self.where}, {name} {short}")
                    self.builder.gap("\n")

    def piece(self, element: Any, slot: str, text: str, link: bool = False) -> None:
        read, escapes = percent_decoded(text, []) if link else (text, [])
        number = len(self.slots)
        self.builder.piece(read, number, number, LINK if link else WORD_STYLE, escapes)
        self.slots.append(Slot(self.part, self.nodes[element], slot))


def _runs(paragraph: Any, lines: dict[str, list[Any]]) -> Iterator[Any]:
    """The text elements and marks that make the paragraph's words; the rest goes to `lines`."""
    stack = [(child, False) for child in reversed(paragraph)]
    while stack:
        element, deleted = stack.pop()
        tag = element.tag
        if tag in PARAGRAPHS:
            lines["other"].append(element)
            continue
        deleted = deleted or tag in DELETED
        if tag == W + "delText" or (deleted and tag in WORDS):
            lines["deleted"].append(element)
        elif tag in (W + "instrText", W + "delInstrText"):
            lines["field"].append(element)
        elif tag in WORDS:
            yield element
        elif tag in MARKS and (tag not in TABS or local(element.getparent().tag) == "r"):
            yield element
        elif isinstance(tag, str) and local(tag) not in GEOMETRY and (element.text or "").strip():
            lines["other"].append(element)
        stack += [(child, deleted) for child in reversed(element)]


def _inside_inner(element: Any, paragraph: Any) -> bool:
    """Is `element`, or one around it, a paragraph inside `paragraph` (of a text box)?"""
    while element is not paragraph:
        if element.tag in PARAGRAPHS:
            return True
        element = element.getparent()
    return False


def _shared_string(element: Any) -> bool:
    """Is this a cell value that is only a number in the list of shared strings?"""
    return element.tag == S + "v" and element.getparent().get("t") == "s"
