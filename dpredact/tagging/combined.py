"""The one tagger that the rest of the house meets: fold, run every tagger, merge, map back."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING

from dpredact.errors import PolicyError
from dpredact.policy import entities
from dpredact.tagging import agree, identity, merge, phrases, recase, vetoes, wordlist
from dpredact.tagging.abroad import Abroad
from dpredact.tagging.folding import Folded, fold
from dpredact.tagging.interface import Span, Tagger, Tagging
from dpredact.tagging.patterns import shields

if TYPE_CHECKING:
    from dpredact.documents.interface import Document
    from dpredact.policy import Policy, TaggerSettings

# Name in the policy -> module with `load(settings) -> Tagger`.
MODULES = {
    "patterns": "dpredact.tagging.patterns",
    "spacy": "dpredact.tagging.spacy_ner",
    "onnx": "dpredact.tagging.onnx_ner",
    "trained": "dpredact.tagging.trained",
    "presidio": "dpredact.tagging.presidio",
    "gliner": "dpredact.tagging.gliner",
    "hf": "dpredact.tagging.hf",
}


@dataclass(frozen=True)
class Finding:
    """One finding of one tagger, in offsets of the original, and its fate in a few words."""

    span: Span
    fate: str


class _Reading:
    """The folded copy of one text and what is derived from it. All have the same length."""

    def __init__(self, copy: str, language: str) -> None:
        self.copy = copy
        self.cased = recase.recase(copy)
        self.shield = shields.Shields(copy)
        self.abroad = Abroad(copy, language)

    def meant_for(self, tagger: Tagger) -> str:
        """Rules and lists look at capitals themselves; models get ordinary writing, and a last
        sentence that ends: some see other names when its full stop is missing."""
        if tagger.name in ("patterns", "lists"):
            return self.copy
        return self.cased + "." if self.cased[-1:].isalnum() else self.cased

    def found(self, tagger: Tagger) -> Tagging:
        """The tagger's findings, none behind the end of the copy."""
        tagging = tagger.tag(self.meant_for(tagger))
        size = len(self.copy)
        spans = (replace(s, end=min(s.end, size)) for s in tagging.spans if s.start < size)
        return replace(tagging, spans=tuple(spans))


class Combined:
    """Runs `taggers` on the folded copy of a text and gives disjoint spans of the original.

    Guarantees: spans are sorted and disjoint, start and end inside words' borders, never in
    white space; `complete` is False as soon as one tagger did not read everything.
    """

    name = "combined"

    def __init__(
        self,
        taggers: Sequence[Tagger],
        *,
        min_score: float = 0.5,
        propagate: bool = True,
        language: str = "en",
        wanted: Callable[[str], bool] = lambda entity: True,
    ) -> None:
        self.taggers = tuple(taggers)
        self._min_score = min_score
        self._propagate = propagate
        named = [code for code in re.findall("[a-z]+", language) if code != "any"]
        self._language = named[0] if named else "en"
        self._wanted = wanted
        self._owner = next((t for t in taggers if isinstance(t, wordlist.ListTagger)), None)

    def tag(self, text: str) -> Tagging:
        folded = fold(text)
        reading = _Reading(folded.text, self._language)
        spans: list[Span] = []
        complete, reasons = True, []
        for tagger in self.taggers:
            tagging = reading.found(tagger)
            complete = complete and tagging.complete
            reasons += tagging.reasons
            for span in tagging.spans:
                spans += self._clean(reading, span)[0]
        merged = self._merge(reading, spans)
        return Tagging(tuple(_back(folded, s) for s in merged), complete, tuple(dict.fromkeys(reasons)))

    def explain(self, text: str, offset: int) -> list[Finding]:
        """What every tagger said about the character at `offset`, and what became of it."""
        folded = fold(text)
        reading = _Reading(folded.text, self._language)
        cleaned = [
            (span, *self._clean(reading, span)) for tagger in self.taggers for span in reading.found(tagger).spans
        ]
        pieces = [piece for _, left, _ in cleaned for piece in left]
        seconded = self._seconded(reading.copy, pieces)
        sound = vetoes.lonely(reading.copy, seconded)
        found = []
        for span, left, fate in cleaned:
            there = _back(folded, span)
            if not there.start <= offset < there.end:
                continue
            if left and not any(piece in seconded for piece in left):
                fate = "left out: the small pipeline's guess, which no other tagger shares"
            elif left and not any(piece in sound for piece in left):
                fate = "left out: a number that stands by no address"
            found.append(Finding(there, fate))
        return found

    def _seconded(self, copy: str, spans: list[Span]) -> list[Span]:
        """Without the weak guesses of one tagger, where the trained one read the text too."""
        read = any(t.name == "trained" for t in self.taggers)
        return vetoes.unconfirmed(copy, spans) if read else spans

    def _clean(self, reading: _Reading, span: Span) -> tuple[list[Span], str]:
        """What is left of one finding (snapped, checked, split), and why if nothing is."""
        span = replace(span, entity=_mapped(span))
        if span.score < self._min_score:
            return [], "left out: score below min_score"
        if not self._wanted(span.entity):
            return [], "left out: no group names this entity"
        snapped = merge.snap(reading.copy, span)
        if snapped is None:
            return [], "left out: only white space or punctuation"
        if not merge.rule_based(snapped):
            hidden = reading.shield.touch(snapped.start, snapped.end)
            if why := vetoes.vetoed(reading.cased, snapped, hidden):
                return [], f"left out: {why}"
            cores = list(reading.abroad.cores(snapped))
            if not cores:
                return [], "left out: no capitalised words in a foreign paragraph"
        else:
            cores = [snapped]
        pieces = [p for core in cores for p in merge.split_names(reading.copy, core)]
        if not merge.rule_based(snapped):
            pieces = [merge.bare(reading.copy, p) for p in pieces]
        return [merge.without_call(reading.copy, s) for s in pieces], "used"

    def _merge(self, reading: _Reading, spans: list[Span]) -> list[Span]:
        copy = reading.copy
        spans = agree.agree(copy, vetoes.lonely(copy, self._seconded(copy, spans)))
        merged = self._permitted(copy, merge.join_names(copy, merge.flatten(copy, spans)))
        if self._propagate and (more := identity.mentions(copy, merged, capitals=reading.abroad.everywhere)):
            merged = merge.join_names(copy, merge.flatten(copy, [*merged, *more]))
            merged = self._permitted(copy, merged)
        whole = phrases.whole(copy, merged)
        titled = [merge.closing(copy, merge.with_title(reading.cased, s)) for s in whole]
        apart = self._owner.apart if self._owner else ()
        return identity.number(copy, merge.flatten(copy, titled), apart)

    def _permitted(self, copy: str, spans: list[Span]) -> list[Span]:
        """`spans` without those that the owner's allow list names whole."""
        allowed = self._owner.allowed if self._owner else frozenset()
        if not allowed:
            return spans
        return [s for s in spans if not wordlist.allowed(copy, s, allowed)]


def _back(folded: Folded, span: Span) -> Span:
    start, end = folded.original(span.start, span.end)
    return replace(span, start=start, end=end)


def _mapped(span: Span) -> str:
    """The entity's own name. PolicyError if a tagger uses a type that nobody mapped."""
    try:
        entity = entities.canonical(span.entity)
    except KeyError:
        entity = ""
    if entity not in entities.FAMILY_OF:
        raise PolicyError(
            f"a tagger ({', '.join(span.sources)}) reports the type {span.entity}, which no group can name",
            next_step="map the type to one of `dpredact policy schema`'s entities in the tagger's labels",
            place="tagger.use",
        )
    return entity


def build(settings: TaggerSettings, policy: Policy | None, everything: bool) -> Combined:
    """See `dpredact.tagging.build`."""
    taggers: list[Tagger] = []
    for name in settings.use:
        kind, _, folder = name.partition(":")  # gliner:FOLDER, hf:FOLDER
        if kind not in MODULES:
            raise PolicyError(
                f"unknown tagger {kind!r}",
                next_step=f"use some of {', '.join(MODULES)}",
                place="tagger.use",
            )
        taggers.append(import_module(MODULES[kind]).load(settings, *filter(None, [folder])))
    if (owner := wordlist.load(settings)) is not None:
        taggers.append(owner)

    def wanted(entity: str) -> bool:
        if policy is not None:
            return policy.group_of(entity) is not None
        return everything or entities.FAMILY_OF[entity] in entities.CORE

    return Combined(
        taggers, min_score=settings.min_score, propagate=settings.propagate, language=settings.language, wanted=wanted
    )


def tag_blocks(tagger: Tagger, document: Document) -> Tagging:
    """The tagger's spans on `document.text`, cut at block borders."""
    tagging = tagger.tag(document.text)
    out: list[Span] = []
    first = 0  # index of the first block that may still meet a span: both are sorted
    for span in tagging.spans:
        while first < len(document.blocks) and document.blocks[first].end <= span.start:
            first += 1
        for block in islice(document.blocks, first, None):
            if block.start >= span.end:
                break
            low, high = max(span.start, block.start), min(span.end, block.end)
            if piece := merge.snap_inside(document.text, replace(span, start=low, end=high)):
                out.append(piece)
    return replace(tagging, spans=tuple(out))
