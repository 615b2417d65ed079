"""A tokeniser for HTML and XML that remembers offsets and accepts what browsers accept.

It decides what is a tag, a comment, raw text or words, as the HTML standard does, and never
changes a character. What the words are for is decided in markup.py.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from dpredact.documents.source import Escape

TAG = re.compile(r"<(/?)([A-Za-z][^\s/>]*)")
ATTRIBUTE = re.compile(
    r"""[\s/]*([^\s"'>/=][^\s>/=]*)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>][^\s>]*)))?"""
)
STRAY = re.compile(r"[\s/]*(?:[\"'=]+)?")
ENTITY = re.compile(r"&(?:#[0-9]{1,8};?|#[xX][0-9a-fA-F]{1,8};?|[A-Za-z][A-Za-z0-9]{1,31};?)")
PERCENT = re.compile(r"(?:%[0-9a-fA-F]{2})+")
# Elements whose content is not markup; in the second group entities count.
RAW = frozenset({"script", "style", "xmp", "iframe", "noembed", "noframes", "plaintext"})
RAW_WITH_ENTITIES = frozenset({"title", "textarea"})


@dataclass(frozen=True, slots=True)
class Attribute:
    """`source[at:to]` is the value without its quotes; quote is one of " ' or nothing."""

    name: str
    at: int
    to: int
    quote: str


@dataclass(frozen=True, slots=True)
class Token:
    """kind: text, raw, comment, start, end, other. `source[at:to]` is the readable part:
    all of a text, the inside of a comment; for a tag, the whole tag."""

    kind: str
    name: str
    at: int
    to: int
    attributes: tuple[Attribute, ...] = ()


def tokens(source: str, *, xml: bool = False) -> Iterator[Token]:
    """The tokens of `source` in order. Unfinished tags and comments reach to its end."""
    at, text_from, end = 0, 0, len(source)
    while (less := source.find("<", at)) >= 0:
        found = _markup_at(source, less, xml)
        if found is None:  # a bare "<"
            at = less + 1
            continue
        if less > text_from:
            yield Token("text", "", text_from, less)
        token, at = found
        yield token
        text_from = at
        if token.kind != "start" or xml or token.name not in RAW | RAW_WITH_ENTITIES:
            continue
        closing = re.compile(rf"</{re.escape(token.name)}(?=[\s/>])", re.IGNORECASE)
        match = closing.search(source, at) if token.name != "plaintext" else None
        at = match.start() if match else end
        if at > text_from:
            kind = "text" if token.name in RAW_WITH_ENTITIES else "raw"
            yield Token(kind, token.name, text_from, at)
        text_from = at
    if end > text_from:
        yield Token("text", "", text_from, end)


def _markup_at(source: str, at: int, xml: bool) -> tuple[Token, int] | None:
    """The markup token that begins at `at` and the offset behind it; None for a bare '<'."""
    end = len(source)
    for opening, closing, kind in (
        ("<!--", "-->", "comment"),
        ("<![CDATA[", "]]>", "raw" if xml else "comment"),
        ("<!", ">", "other"),
        ("<?", "?>" if xml else ">", "other"),
    ):
        if source.startswith(opening, at):
            inside = at + len(opening)
            stop = source.find(closing, inside)
            stop, after = (end, end) if stop < 0 else (stop, stop + len(closing))
            return Token(kind, "", inside, stop), after
    tag = TAG.match(source, at)
    if not tag:
        return None
    name = tag[2] if xml else tag[2].lower()
    if tag[1]:
        stop = source.find(">", tag.end())
        after = end if stop < 0 else stop + 1
        return Token("end", name, at, after), after
    attributes, after = _attributes(source, tag.end(), xml)
    return Token("start", name, at, after, tuple(attributes)), after


def _attributes(source: str, at: int, xml: bool) -> tuple[list[Attribute], int]:
    """The attributes from `at` on and the offset behind the tag's '>'."""
    found: list[Attribute] = []
    while at < len(source):
        match = ATTRIBUTE.match(source, at)
        if match is None:
            at = STRAY.match(source, at).end()
            if at < len(source) and source[at] == ">":
                return found, at + 1
            if ATTRIBUTE.match(source, at) is None:
                at += 1
            continue
        name = match[1] if xml else match[1].lower()
        for group, quote in ((2, '"'), (3, "'"), (4, "")):
            if match[group] is not None:
                found.append(Attribute(name, *match.span(group), quote))
        at = match.end()
    return found, at


def readable(source: str, *, attribute: bool = False, url: bool = False) -> tuple[str, list[Escape]]:
    """What a text or attribute value says, and where its entities (and, in a URL, its
    percent signs) are. A bare & is a character."""
    text, escapes = _unescaped(source, attribute)
    if not url or "%" not in text:
        return text, escapes
    return percent_decoded(text, escapes)


def _unescaped(source: str, attribute: bool) -> tuple[str, list[Escape]]:
    if "&" not in source:
        return source, []
    parts: list[str] = []
    escapes: list[Escape] = []
    length = at = 0
    for match in ENTITY.finditer(source):
        entity = match.group()
        plain = html.unescape(entity)
        if plain == entity:
            continue
        following = source[match.end() : match.end() + 1]
        if attribute and not entity.endswith(";") and (following == "=" or following.isalnum()):
            continue  # "?a=1&copy=2": no entity, says the standard
        parts.append(source[at : match.start()])
        length += match.start() - at
        parts.append(plain)
        escapes.append(Escape(length, length + len(plain), match.start(), match.end()))
        length += len(plain)
        at = match.end()
    return "".join([*parts, source[at:]]), escapes


def percent_decoded(text: str, entities: list[Escape]) -> tuple[str, list[Escape]]:
    """`text` with its percent escapes read, and all escapes in source offsets."""
    parts: list[str] = []
    escapes: list[Escape] = []
    length = at = 0
    shift = 0  # source offset minus text offset so far
    waiting = list(entities)

    def pass_entities(until: int) -> None:
        nonlocal shift
        while waiting and waiting[0].start < until:
            entity = waiting.pop(0)
            moved = entity.start - at + length
            escapes.append(
                Escape(moved, moved + entity.end - entity.start, entity.at, entity.to)
            )
            shift = entity.to - entity.end

    for match in PERCENT.finditer(text):
        try:
            plain = unquote_to_bytes(match.group()).decode("utf-8")
        except UnicodeDecodeError:
            continue
        pass_entities(match.start())
        if waiting and waiting[0].start < match.end():
            continue  # an entity spells the percent sign itself
        parts.append(text[at : match.start()])
        length += match.start() - at
        at = match.start()
        for character in plain:  # one escape for each character
            width = 3 * len(character.encode("utf-8"))
            escapes.append(Escape(length, length + 1, at + shift, at + width + shift))
            parts.append(character)
            length += 1
            at += width
    pass_entities(len(text))
    return "".join([*parts, text[at:]]), escapes
