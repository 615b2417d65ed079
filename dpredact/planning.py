"""What will be written of one document, and what it can cost: skeleton and policy only.

`plan` (the command) prints it without a language model, the pipeline carries it out, and
both get the same T because both count with the model's tokenizer alone. No torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dpredact import contexts
from dpredact.documents.interface import Document, Kind
from dpredact.errors import ModelError, NotCovered
from dpredact.policy import Length, Policy
from dpredact.promise import WHOLE, Promise, promise, view_names

SHORTEST = 20  # public tokens; shorter blocks of a text written piece by piece are kept
PROMPT = 320  # room for instruction and chat template, so that planning needs no template
PUBLIC_CHUNK = 3000  # most public tokens written in one go, window permitting


@dataclass(frozen=True)
class Unit:
    """One stretch that the model writes in one go."""

    context: contexts.Context
    length: int  # public tokens
    limit: int  # this unit's share of T
    slot: contexts.Slot | None = None  # spans scope: the one span to be replaced
    lead: str = field(default="", repr=False)  # spans scope: public text up to the span
    follow: str = field(default="", repr=False)  # spans scope: public text after it

    @property
    def views(self) -> tuple[str, ...]:
        """Private views that this unit's draws depend on."""
        if self.slot is not None:
            return (self.slot.view,) if self.slot.view is not None else ()
        return self.context.views()


@dataclass(frozen=True)
class Plan:
    """Units, labels and promise of one document."""

    units: tuple[Unit, ...]
    kept: tuple[contexts.Region, ...]  # regions outside the units: replaced by their labels
    promise: Promise
    cut: bool = False  # T was too small for every unit: some text is not written at all

    @property
    def tokens(self) -> int:
        """T: the most tokens that can be drawn."""
        return sum(u.limit for u in self.units)


def plan(
    document: Document,
    policy: Policy,
    regions: Sequence[contexts.Region],
    encode: Callable[[str], list[int]],
    vocabulary: int,
    window: int,
) -> Plan:
    """Units, T and promise of one document. No model needed: `encode` is its tokenizer.

    window: tokens of the model's window.
    """
    if policy.scope == "spans":
        return _spans_plan(document, policy, regions, encode, vocabulary, window)
    ratio = policy.max_new_tokens.ratio if isinstance(policy.max_new_tokens, Length) else 0.0
    room = window - PROMPT - policy.view_reserve
    most = min(PUBLIC_CHUNK, int(room / (1 + ratio)) - 1)
    if ratio == 0.0:
        most = min(PUBLIC_CHUNK, room - int(policy.max_new_tokens))  # type: ignore[arg-type]
    hard = most
    if policy.chunk_tokens is not None:
        most = min(most, policy.chunk_tokens)
    if most < 1:
        raise ModelError(
            f"the model's window of {window} tokens leaves no room for a text",
            next_step="lower max_new_tokens or view_reserve, or use a model with a larger window",
        )
    numbering = contexts.Numbering()
    rough: list[tuple[contexts.Context, int]] = []
    for stretch in _stretches(document, policy, regions, encode):
        for start, end in _chunks(document, stretch, policy, regions, encode, (most, hard)):
            context = contexts.build(document.text, regions, policy, start, end, numbering)
            rough.append((context, len(context.ids(encode))))
    limits = share_tokens(policy, [length for _, length in rough])
    units = tuple(
        Unit(context, length, limit)
        for (context, length), limit in zip(rough, limits, strict=True)
        if limit > 0
    )
    inside = [(u.context.start, u.context.end) for u in units]
    kept = tuple(
        r for r in regions if not any(a <= r.start and r.end <= b for a, b in inside)
    )
    return Plan(units, kept, promise(policy, _counts(policy, units), vocabulary, sum(limits)), cut=0 in limits)


def _counts(policy: Policy, units: Sequence[Unit]) -> dict[str, int]:
    """Most draws that can depend on each view: only units in which it differs from view 0."""
    if policy.baseline is not None:
        return {WHOLE: sum(u.limit for u in units)}
    return {view: sum(u.limit for u in units if view in u.views) for view in view_names(policy)}


def _spans_plan(
    document: Document,
    policy: Policy,
    regions: Sequence[contexts.Region],
    encode: Callable[[str], list[int]],
    vocabulary: int,
    window: int,
) -> Plan:
    """scope: spans. One unit a span, read in its own block; T is spans × max_span_tokens."""
    numbering = contexts.Numbering()
    units: list[Unit] = []
    written: set[tuple[int, int]] = set()
    for block in document.blocks:
        context = contexts.build(document.text, regions, policy, block.start, block.end, numbering)
        if not context.views():
            continue
        length = len(context.ids(encode))
        for place, slot in enumerate(context.pieces):
            if not isinstance(slot, contexts.Slot) or slot.view is None:
                continue
            most = policy.groups[slot.group].max_span_tokens or policy.max_span_tokens
            lead = context.public(0, place).rstrip(" ")
            if PROMPT + length + policy.view_reserve + len(encode(lead)) + most > window:
                continue  # too long for the model: closed with its label
            after = context.pieces[place + 1] if place + 1 < len(context.pieces) else ""
            follow = after if isinstance(after, str) else ""
            units.append(Unit(context, length, most, slot, lead, follow))
            written.add((slot.start, slot.end))
    kept = tuple(r for r in regions if (r.start, r.end) not in written)
    return Plan(tuple(units), kept, promise(policy, _counts(policy, units), vocabulary))


def share_tokens(policy: Policy, lengths: Sequence[int]) -> list[int]:
    """T of each unit, from public lengths: together never more than the policy allows."""
    rule, total = policy.max_new_tokens, sum(lengths)
    if total == 0:
        return [0 for _ in lengths]
    if isinstance(rule, Length):
        wished = [math.ceil(rule.ratio * n) for n in lengths]
        if sum(wished) <= rule.at_most:
            return wished
        allowed = rule.at_most
    else:
        allowed = rule
    shares = [allowed * n // total for n in lengths]
    for i in range(allowed - sum(shares)):  # what rounding left over
        shares[i % len(shares)] += 1
    return shares


def _stretches(
    document: Document,
    policy: Policy,
    regions: Sequence[contexts.Region],
    encode: Callable[[str], list[int]],
) -> list[list[int]]:
    """Runs of prose blocks that are written together, as lists of block numbers.

    Where a file is written piece by piece (structured files, `chunk_tokens`), blocks with
    few public words are left out: a heading, an address or a signature alone gives a model
    nothing to say. Their words become labels.
    """
    piecewise = policy.chunk_tokens is not None or not document.flowing
    prose = [
        n for n, b in enumerate(document.blocks) if b.kind is Kind.PROSE and b.start < b.end
    ]
    wordy = [n for n in prose if _public_tokens(document, n, policy, regions, encode) >= SHORTEST]
    if piecewise and (wordy or len(prose) > 1):
        prose = wordy
    runs: list[list[int]] = []
    for number in prose:
        start = document.blocks[number].start
        if (
            document.flowing
            and runs
            and runs[-1][-1] == number - 1
            and not document.text[document.blocks[number - 1].end : start].strip()
        ):
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _public_tokens(
    document: Document,
    number: int,
    policy: Policy,
    regions: Sequence[contexts.Region],
    encode: Callable[[str], list[int]],
) -> int:
    """Tokens of a block's untagged text, placeholders not counted."""
    block = document.blocks[number]
    context = contexts.build(
        document.text, regions, policy, block.start, block.end, contexts.Numbering()
    )
    return sum(len(encode(p)) for p in context.pieces if isinstance(p, str))


def _chunks(
    document: Document,
    run: Sequence[int],
    policy: Policy,
    regions: Sequence[contexts.Region],
    encode: Callable[[str], list[int]],
    sizes: tuple[int, int],
) -> list[tuple[int, int]]:
    """The run cut at block borders into stretches of about `sizes[0]` public tokens.

    A block is never cut; one above `sizes[1]` does not fit the model and is refused.
    """
    most, window_most = sizes
    out: list[tuple[int, int]] = []
    first = document.blocks[run[0]].start
    end, used = first, 0
    for number in run:
        block = document.blocks[number]
        part = contexts.build(
            document.text, regions, policy, block.start, block.end, contexts.Numbering()
        )
        length = len(part.ids(encode)) + 2  # the white space between blocks
        if length > window_most:
            raise NotCovered(
                "one paragraph is longer than the model's window",
                next_step="break the paragraph, or use a model with a larger window",
                place=f"{document.name}, {block.where}",
            )
        if used and used + length > most:
            out.append((first, end))
            first, used = block.start, 0
        end, used = block.end, used + length
    out.append((first, end))
    return out
