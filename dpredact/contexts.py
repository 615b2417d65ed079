"""Skeleton, placeholders, and the 1 + m views of one stretch of text.

The skeleton is public by assumption: the untagged text, the place and group of every span,
with `surrogate` which spans are the same person, with `token` each span's length in tokens.
The public view is a function of the skeleton; view i shows the words of group i besides.
No view shows two groups, except the one view of `mode: single` (THEORY §1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from dpredact.policy import Method, Policy
from dpredact.policy.entities import FAMILY_OF
from dpredact.promise import view_names
from dpredact.tagging.interface import Span

# Invented values, by family; a span's index picks one. Never longer than its list: then the
# label with a number takes over.
SURROGATES: dict[str, tuple[str, ...]] = {
    "PERSON": (
        "Alex Morgan", "Sam Carter", "Robin Hale", "Jamie Brook", "Casey Flynn", "Drew Palmer",
        "Riley Shaw", "Quinn Harper", "Toby Marsh", "Avery Stone", "Jordan Pike", "Blake Rowe",
    ),
    "LOCATION": (
        "Northfield", "Easton", "Milbrook", "Harwick", "Stonely", "Ashdale", "Redcliff",
        "Westerby", "Oakhurst", "Linden",
    ),
    "ADDRESS": ("1 Mill Lane", "2 Station Road", "3 Church Street", "4 Park Avenue"),
    "ORG": (
        "Acorn Ltd", "Birch Group", "Cedar Trust", "Dover Institute", "Elm Services",
        "Fir Partners", "Grove Clinic", "Hazel Bank",
    ),
    # Weekdays: they fit after on, since, until and before, and cost one token.
    "DATE": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "TIME": ("noon", "midnight", "dawn", "dusk"),
    "AGE": ("40", "41", "42", "43"),
}  # fmt: skip


@dataclass(frozen=True)
class Slot:
    """One span of the skeleton. `words` are the content Xᵢ and never print."""

    start: int
    end: int
    group: str  # policy group
    view: str | None  # private view that shows it; None: redact, a placeholder in every view
    entity: str
    index: int  # running number of its identity within the group
    words: str = field(repr=False)

    @property
    def label(self) -> str:
        """One constant per group: neither length nor identity shows."""
        return f"[{self.group}]"

    @property
    def surrogate(self) -> str:
        family = SURROGATES.get(FAMILY_OF.get(self.entity, ""), ())
        return family[self.index] if self.index < len(family) else f"[{self.group} {self.index + 1}]"


@dataclass(frozen=True)
class Context:
    """A stretch of text as public pieces and slots, in order."""

    start: int
    end: int
    pieces: tuple[str | Slot, ...] = field(repr=False)
    placeholder: str = "label"

    @property
    def slots(self) -> tuple[Slot, ...]:
        return tuple(p for p in self.pieces if isinstance(p, Slot))

    def views(self) -> tuple[str, ...]:
        """Private views that differ from the public one here, in order of first appearance."""
        return tuple(dict.fromkeys(s.view for s in self.slots if s.view is not None))

    def text(self, view: str | None = None) -> str:
        """The public view, or private view `view`, as text (`token`: one `_` per slot)."""
        return "".join(p if isinstance(p, str) else self._shown(p, view) for p in self.pieces)

    def public(self, first: int, last: int) -> str:
        """The public view of pieces first to last (exclusive)."""
        return "".join(p if isinstance(p, str) else self._shown(p, None) for p in self.pieces[first:last])

    def _shown(self, slot: Slot, view: str | None) -> str:
        if view is not None and slot.view == view:
            return slot.words
        if self.placeholder == "surrogate":
            return slot.surrogate
        return "_" if self.placeholder == "token" else slot.label

    def ids(self, encode: Callable[[str], list[int]], view: str | None = None) -> list[int]:
        """Token ids of a view.

        `token` placeholders: the text is encoded in pieces cut at the span borders, so public
        pieces have the same ids in every view and all views the same length.
        """
        if self.placeholder != "token":
            return encode(self.text(view))
        blank = encode("_")[:1]
        out: list[int] = []
        for piece in self.pieces:
            if isinstance(piece, str):
                out += encode(piece)
            else:
                words = encode(piece.words)
                shown = view is not None and piece.view == view
                out += words if shown else blank * len(words)
        return out


@dataclass(frozen=True)
class Region:
    """A stretch that belongs to one policy group; regions of a document are disjoint."""

    start: int
    end: int
    group: str
    entity: str
    identity: int | None


def regions(spans: Iterable[Span], policy: Policy) -> tuple[Region, ...]:
    """Disjoint regions from spans, by policy group.

    Spans whose type the policy does not look for, and `keep` spans that touch no other, are
    public text. In an overlap the protected group wins: the region is the union, its group
    a redacted span's if there is one, else the longest span's among those that are protected.
    """
    found = []
    for span in spans:
        group = policy.group_of(span.entity)
        if group is not None and span.start < span.end:
            found.append(Region(span.start, span.end, group, span.entity, span.identity))
    protected = sorted(
        (r for r in found if policy.groups[r.group].method is not Method.KEEP),
        key=lambda r: (r.start, -r.end),
    )
    out: list[Region] = []
    for region in protected:
        if out and region.start < out[-1].end:
            last = out[-1]
            # ε of a redacted word is 0, whatever overlaps it; else the longer span's group.
            head = max(last, region, key=lambda r: (_redacted(r, policy), r.end - r.start))
            end = max(last.end, region.end)
            out[-1] = Region(last.start, end, head.group, head.entity, head.identity)
        else:
            out.append(region)
    return tuple(out)


def _redacted(region: Region, policy: Policy) -> bool:
    return policy.groups[region.group].method is Method.REDACT


def build(
    text: str, found: Sequence[Region], policy: Policy, start: int, end: int, numbering: Numbering
) -> Context:
    """The context of `text[start:end]`, with every region that lies in it as a slot.

    ValueError if a region crosses `start` or `end`: half a name must not become public text.
    """
    shows = {member: view for view, members in view_names(policy).items() for member in members}
    pieces: list[str | Slot] = []
    at = start
    for region in found:
        if region.end <= start or end <= region.start:
            continue
        if region.start < start or end < region.end:  # its words would be public text
            raise ValueError("a tagged region crosses the border of the stretch")
        if region.start > at:
            pieces.append(text[at : region.start])
        words = text[region.start : region.end]
        index = numbering.index(region, words)
        pieces.append(
            Slot(region.start, region.end, region.group, shows.get(region.group), region.entity,
                 index, words)
        )  # fmt: skip
        at = region.end
    if at < end:
        pieces.append(text[at:end])
    return Context(start, end, tuple(pieces), policy.placeholder)


class Numbering:
    """Running numbers per group: mentions of one identity share theirs (surrogates only)."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, object], int] = {}
        self._next: dict[str, int] = {}

    def index(self, region: Region, words: str) -> int:
        key = (region.group, region.identity if region.identity is not None else words.casefold())
        if key not in self._known:
            self._known[key] = self._next.get(region.group, 0)
            self._next[region.group] = self._known[key] + 1
        return self._known[key]

    def __repr__(self) -> str:
        return "Numbering()"
