"""Word files: every XML part is searched, metadata goes, formatting stays.

The package is opened part by part, also parts that no program would show. A part whose words
cannot be read (a picture, a macro, an old embedded object) refuses the whole file. Parts
without words (fonts) are copied; thumbnails, printer settings and labels are dropped.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from dpredact.documents import picture
from dpredact.documents.interface import Block, Document, Edit, Reading, replaced
from dpredact.documents.office_walk import TEXT_ATTRIBUTES, S, Slot, W, Walk, local
from dpredact.documents.package import pack, unpack
from dpredact.documents.source import Builder, Child, adopt, assign, rewritten, shared_out
from dpredact.errors import DocumentError

TYPES = "[Content_Types].xml"
XML = re.compile(r"\.(?:xml|rels|vml)\Z", re.IGNORECASE)
FONT = re.compile(r"\.(?:odttf|ttf|fntdata)\Z", re.IGNORECASE)
DROPPED = re.compile(
    r"docProps/thumbnail\.|docMetadata/|(?:^|/)printerSettings/|(?:^|/)printerSettings\d*\.bin\Z",
    re.IGNORECASE,
)
PICTURE = re.compile(r"\.(?:png|jpe?g|gif|bmp|tiff?|emf|wmf|emz|wmz|svg|webp|heic|wdp|ico)\Z", re.I)
READABLE = frozenset({".docx", ".docm", ".dotx", ".xlsx", ".pptx", ".html", ".htm", ".txt", ".mht",
                      ".mhtml", ".eml", ".csv", ".json"})  # fmt: skip
# Names of parts that programs give by themselves; any other name may say something.
USUAL = re.compile(
    r"(?:(?:word|xl|ppt|customXml|docProps|_rels|theme|charts|embeddings|media|fonts|glossary|"
    r"diagrams|drawings|worksheets|slides|printerSettings|webextensions|docMetadata)/)*"
    r"(?:document|styles|stylesWithEffects|settings|webSettings|fontTable|theme|numbering|footnotes|"
    r"endnotes|header|footer|comments|commentsExtended|commentsIds|commentsExtensible|people|item|"
    r"itemProps|app|core|custom|thumbnail|chart|style|colors|drawing|data|layout|quickStyle|image|"
    r"font|oleObject|sheet|sharedStrings|workbook|calcChain|table|presentation|slide|vmlDrawing|"
    r"printerSettings|LabelInfo|vbaProject|vbaData|afchunk|bibliography|"
    r"Microsoft_(?:Excel|Word|PowerPoint|Office)_\w{0,20}?)?\d*(?:\.[a-z]{2,5}){1,2}\Z"
)
WORD_TYPE = "wordprocessingml"
DATA_LIKE = re.compile(r"@|\\|\d[\d ().-]{5,}\d|[^\W\d_]{2,}[ _][^\W\d_]{2,}")
# Numbers, times and identifiers that programs make.
MACHINE_MADE = re.compile(
    r"-?[0-9. ]+|[0-9A-Fa-f]{8}|\{?[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\}?|"
    r"\d{4}-\d\d-\d\dT[\d:.]+Z?"
)
FONTS = ("Relationship", "rFonts", "latin", "ea", "cs", "sym", "font", "buFont", "mathFont")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
XML_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
METADATA_REMARK = (
    "document properties, authors of changes and comments, their dates, and revision ids are removed"
)


def read(data: bytes, name: str, how: Reading) -> Document:
    """A Word file (inside one, also other Office packages).

    Raises DocumentError for damage, a password, a signature, a zip bomb, and for every part
    that cannot be read.
    """
    parts = unpack(data)
    if TYPES not in parts:
        raise DocumentError(
            "this is a zip archive, not a Word file", next_step="unpack it and give its files"
        )
    if not how.depth and WORD_TYPE.encode() not in parts[TYPES]:
        raise DocumentError(
            "this is an Office file, but not a Word file", next_step="export it as .docx or .csv"
        )
    return OfficeDocument(name, parts, how)


class OfficeDocument(Document):
    """A package of parts. Nothing is kept of a tree between `read` and `render` but numbers."""

    media_type = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"

    def __init__(self, name: str, parts: dict[str, bytes], how: Reading) -> None:
        self.name = name
        self._parts = parts
        self._slots: list[Slot] = []
        self._marks: list[tuple[int, Slot]] = []
        self._children: list[Child] = []
        self._rest: list[str] = []
        builder, blocks = Builder(), []
        for number, part in enumerate(sorted(parts, key=_reading_order), start=1):
            place = part if USUAL.match(part) else f"part {number}"
            if not USUAL.match(part) and part != TYPES:
                self._rest.append(part)
            blocks += self._read_part(builder, part, place, how)
        self.text = builder.text()
        self.blocks = tuple(sorted([*builder.finished(self.text), *blocks], key=lambda b: b.start))
        self._pieces = builder.pieces

    def _read_part(self, builder: Builder, part: str, place: str, how: Reading) -> list[Block]:
        content = self._parts[part]
        if DROPPED.search(part) or FONT.search(part) or not content:
            return []
        if part.startswith("_xmlsignatures/"):
            raise DocumentError("the file is signed", next_step="remove the signature first")
        if XML.search(part):
            root = _parse(content, place)
            if part != TYPES:
                Walk(builder, self._slots, self._marks, part, place).run(root)
                self._rest += _machine_values(root, part)
            return []
        if PICTURE.search(part):
            child, _ = adopt(builder, picture.read(content, part, how, place), part, place)
            self._children.append(child)
            return []
        suffix = PurePath(part).suffix.lower()
        if suffix not in READABLE:
            raise DocumentError(
                "the file holds a part whose words cannot be read",
                next_step="remove the embedded object (or macro) first",
                place=place,
            )
        from dpredact.documents import read as read_any

        try:
            document = read_any(content, "embedded" + suffix, how.inside())
        except DocumentError as error:
            raise DocumentError(error.message, next_step=error.next_step, place=place) from None
        child, blocks = adopt(builder, document, part, place)
        builder.gap("\n\n")
        self._children.append(child)
        return blocks

    def render(self, edits: Sequence[Edit]) -> bytes:
        replaced(self.text, edits)  # sorted, disjoint, inside
        own, inside = shared_out(edits, self._children)
        borders = [(piece.start, piece.end) for piece in self._pieces]
        by_part: dict[str, list[tuple[int, Any]]] = {}
        for number, local_edits in assign(own, borders, self.blocks).items():
            by_part.setdefault(self._slots[number].part, []).append((number, local_edits))
        whole = {(block.start, block.end) for block in self.blocks}
        covered = [e for e in own if (e.start, e.end) in whole]
        marks = [slot for at, slot in self._marks if any(e.start <= at < e.end for e in covered)]
        new = {child.key: child.document.render(moved)
               for child, moved in zip(self._children, inside, strict=True)}  # fmt: skip
        dropped = {part for part in self._parts if DROPPED.search(part)}
        out: dict[str, bytes] = {}
        for part, content in self._parts.items():
            if part in dropped:
                continue
            if part in new:
                out[part] = new[part]
            elif XML.search(part) and content:
                inside_part = [slot for slot in marks if slot.part == part]
                out[part] = self._render_part(
                    part, content, by_part.get(part, []), inside_part, dropped
                )
            else:
                out[part] = content
        return pack(out)

    def _render_part(
        self,
        part: str,
        content: bytes,
        edits: list[tuple[int, Any]],
        marks: list[Slot],
        dropped: set[str],
    ) -> bytes:
        """A part with its edits; `marks`: line breaks and tabs of paragraphs written anew."""
        from lxml import etree

        root = _parse(content, "")
        nodes = list(root.iter())
        for number, local_edits in edits:
            piece, slot = self._pieces[number], self._slots[number]
            node = nodes[slot.node]
            old = getattr(node, slot.slot) if slot.slot in ("text", "tail") else node.get(slot.slot)
            new = rewritten(old, self.text[piece.start : piece.end], piece, local_edits)
            _put(node, slot.slot, NOT_XML.sub("", new), old)
        for mark in (nodes[slot.node] for slot in marks):
            if mark.get(W + "type") is None:  # page and column breaks stay
                mark.getparent().remove(mark)
        before = etree.tostring(root)
        _scrub(root, part, dropped)
        alone = root.getprevious() is None and root.getnext() is None  # no comments around it
        if not edits and alone and etree.tostring(root) == before:
            return content
        return etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True)

    def unblocked(self) -> str:
        rest = [*self._rest, *(child.document.unblocked() for child in self._children)]
        return "\n".join(text for text in rest if text.strip())

    def remarks(self, edits: Sequence[Edit]) -> tuple[str, ...]:
        _, inside = shared_out(edits, self._children)
        found = [METADATA_REMARK]
        for child, moved in zip(self._children, inside, strict=True):
            found += [r for r in child.document.remarks(moved) if r not in found]
        return tuple(found)


def _reading_order(part: str) -> tuple[int, str]:
    """The body first, then what belongs to it, properties and links last."""
    if part.endswith("/document.xml"):
        return (0, part)
    return (2 if part.startswith("docProps/") or part.endswith(".rels") else 1, part)


def _parse(content: bytes, place: str) -> Any:
    """The tree of an XML part. Declared entities are refused: they can hide or multiply text."""
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
    )
    try:
        root = etree.fromstring(content, parser)
    except (etree.XMLSyntaxError, ValueError):
        raise DocumentError("a part is not valid XML", place=place) from None
    if isinstance(root.tag, str) and root.tag.startswith("{http://purl.oclc.org/ooxml/"):
        raise DocumentError(
            "the file is saved as Strict Open XML", next_step="save it as a plain .docx", place=place
        )
    if root.getroottree().docinfo.doctype:
        raise DocumentError("a part declares a document type of its own", place=place)
    return root


def _machine_values(root: Any, part: str) -> list[str]:
    """Attribute values that no edit reaches but that look as if a person had written them."""
    if re.search(r"(?:styles\w*|fontTable|theme\d*)\.xml\Z", part):
        return _own_styles(root)
    return [
        value
        for element in root.iter()
        if isinstance(element.tag, str) and local(element.tag) not in FONTS
        for name, value in element.attrib.items()
        if DATA_LIKE.search(value)
        and not MACHINE_MADE.fullmatch(value)
        and not name.endswith(("}id", "typeface", "Ignorable", "style", "path", "uri", "font"))
        and (None, local("}" + name)) not in TEXT_ATTRIBUTES
    ]  # fmt: skip


def _own_styles(root: Any) -> list[str]:
    """Names and ids of styles that are not the program's own."""
    styles = list(root.iter(W + "style"))
    names = {style: [n.get(W + "val", "") for n in style.iter(W + "name")] for style in styles}
    known = {n.get(W + "name", "") for n in root.iter(W + "lsdException")}
    known.update(*(names[style] for style in styles if not style.get(W + "customStyle")))
    dense = {name.lower().replace(" ", "") for name in known}
    return [
        value
        for style in styles
        if style.get(W + "customStyle")
        for value in (*names[style], style.get(W + "styleId", ""))
        if value.lower().replace(" ", "").removesuffix("char") not in dense
    ]


def _put(node: Any, slot: str, new: str, old: str) -> None:
    """Write a new text. Line breaks and tabs in a run become elements, as Word wants them."""
    if slot == "tail":
        node.tail = new
    elif slot != "text":
        node.set(slot, new)
    elif node.tag == W + "t" and re.search(r"[\n\t]", new) and not re.search(r"[\n\t]", old):
        _put_lines(node, new)
    else:
        node.text = new
        cell = node.getparent() if node.tag == S + "v" else None
        if cell is not None and cell.get("t", "n") == "n" and not NUMBER.fullmatch(new):
            cell.set("t", "str")  # a number gave way to a word
        if node.tag in (W + "t", W + "delText", W + "instrText") and new != new.strip():
            node.set(XML_SPACE, "preserve")


def _put_lines(node: Any, new: str) -> None:
    first, *others = re.split(r"(\r?\n|\t)", new)
    node.text = first
    node.set(XML_SPACE, "preserve")
    for piece in others:
        mark = piece in ("\n", "\r\n", "\t")
        following = node.makeelement(W + (("tab" if piece == "\t" else "br") if mark else "t"))
        if not mark:
            following.text = piece
            following.set(XML_SPACE, "preserve")
        node.addnext(following)
        node = following


def _scrub(root: Any, part: str, dropped: set[str]) -> None:
    """Take out what tells about people and machines: properties, authors, dates, revision ids."""
    if part.startswith("docProps/"):
        for child in list(root):
            root.remove(child)
        return
    if part == TYPES or part.endswith(".rels"):
        _forget(root, part, dropped)
        return
    # bound controls would show the stored property again instead of the words in the text
    gone = {W + "rsids", W + "attachedTemplate", W + "dataBinding"}
    for element in list(root.iter()):
        if not isinstance(element.tag, str):
            continue
        name = local(element.tag)
        if element.tag in gone or name in ("docId", "presenceInfo"):
            element.getparent().remove(element)
            continue
        for attribute in list(element.attrib):
            short = local("}" + attribute)
            if attribute.startswith("{") and (short.startswith("rsid") or short in ("date", "dateUtc")):
                del element.attrib[attribute]
            elif attribute.startswith("{") and short in ("author", "initials"):
                element.set(attribute, "Author" if short == "author" else "A")
    if local(root.tag) == "people":
        for person in list(root)[1:]:
            root.remove(person)


def _forget(root: Any, part: str, dropped: set[str]) -> None:
    """No link and no content type may point to a part that is dropped."""
    folder = posixpath.dirname(posixpath.dirname(part))
    for child in list(root):
        target = child.get("Target") or child.get("PartName") or ""
        full = target.lstrip("/") if target.startswith("/") else posixpath.normpath(
            posixpath.join(folder, target)
        )  # fmt: skip
        if full in dropped or child.get("Type", "").endswith("/attachedTemplate"):
            root.remove(child)
