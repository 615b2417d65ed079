"""The one tagger that the rest of the house meets: fold, run every tagger, merge, map back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from dpredact.errors import PolicyError
from dpredact.policy import entities
from dpredact.tagging import agree, identity, merge, recase, vetoes, wordlist
from dpredact.tagging.folding import fold
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
        wanted: Callable[[str], bool] = lambda entity: True,
    ) -> None:
        self.taggers = tuple(taggers)
        self._min_score = min_score
        self._propagate = propagate
        self._wanted = wanted
        self._owner = next((t for t in taggers if isinstance(t, wordlist.ListTagger)), None)

    def tag(self, text: str) -> Tagging:
        folded = fold(text)
        copy = folded.text
        cased = recase.recase(copy)
        shield = shields.Shields(copy)
        spans: list[Span] = []
        complete, reasons = True, []
        for tagger in self.taggers:
            reading = copy if tagger.name in ("patterns", "lists") else cased
            tagging = tagger.tag(reading)
            complete = complete and tagging.complete
            reasons += tagging.reasons
            for span in tagging.spans:
                spans += self._clean(copy, cased, span, shield)
        merged = self._merge(copy, spans)
        back = []
        for span in merged:
            start, end = folded.original(span.start, span.end)
            back.append(replace(span, start=start, end=end))
        return Tagging(tuple(back), complete, tuple(reasons))

    def _clean(self, copy: str, cased: str, span: Span, shield: shields.Shields) -> list[Span]:
        """What is left of one finding: snapped, checked, split."""
        span = replace(span, entity=_mapped(span))
        if span.score < self._min_score or not self._wanted(span.entity):
            return []
        snapped = merge.snap(copy, span)
        if snapped is None:
            return []
        if not merge.rule_based(snapped) and vetoes.vetoed(cased, snapped, shield.touch(snapped.start, snapped.end)):
            return []
        return [merge.without_call(copy, s) for s in merge.split_names(copy, snapped)]

    def _merge(self, copy: str, spans: list[Span]) -> list[Span]:
        spans = agree.agree(copy, vetoes.lonely(copy, spans))
        merged = self._permitted(copy, merge.join_names(copy, merge.flatten(copy, spans)))
        if self._propagate and (more := identity.mentions(copy, merged)):
            merged = merge.join_names(copy, merge.flatten(copy, [*merged, *more]))
            merged = self._permitted(copy, merged)
        titled = [merge.with_title(copy, s) for s in merged]
        apart = self._owner.apart if self._owner else ()
        return identity.number(copy, merge.flatten(copy, titled), apart)

    def _permitted(self, copy: str, spans: list[Span]) -> list[Span]:
        """`spans` without those that the owner's allow list names whole."""
        allowed = self._owner.allowed if self._owner else frozenset()
        if not allowed:
            return spans
        return [s for s in spans if not wordlist.allowed(copy, s, allowed)]


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
        if name not in MODULES:
            raise PolicyError(
                f"unknown tagger {name!r}",
                next_step=f"use some of {', '.join(MODULES)}",
                place="tagger.use",
            )
        taggers.append(import_module(MODULES[name]).load(settings))
    if (owner := wordlist.load(settings)) is not None:
        taggers.append(owner)

    def wanted(entity: str) -> bool:
        if policy is not None:
            return policy.group_of(entity) is not None
        return everything or entities.FAMILY_OF[entity] in entities.CORE

    return Combined(
        taggers, min_score=settings.min_score, propagate=settings.propagate, wanted=wanted
    )


def tag_blocks(tagger: Tagger, document: Document) -> Tagging:
    """The tagger's spans on `document.text`, cut at block borders."""
    tagging = tagger.tag(document.text)
    out: list[Span] = []
    blocks = iter(document.blocks)
    block = next(blocks, None)
    for span in tagging.spans:
        while block is not None and block.end <= span.start:
            block = next(blocks, None)
        rest = [b for b in document.blocks if b.start < span.end and span.start < b.end]
        for part in rest:
            piece = merge.snap_inside(
                document.text,
                replace(span, start=max(span.start, part.start), end=min(span.end, part.end)),
            )
            if piece:
                out.append(piece)
    return replace(tagging, spans=tuple(out))
