"""One document between tagging and certificate: its lanes, and what becomes of the drawn ids.

Several writings can be decoded together: `lanes` go into one session, `finish` puts the
texts back. Both scopes share everything but what a unit is and how a drawn text is closed.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpredact import contexts, decoding, mixing, planning, prompts
from dpredact.certificate import statement
from dpredact.documents.interface import Document, Edit
from dpredact.errors import ModelError, PolicyError
from dpredact.policy import Policy
from dpredact.promise import WHOLE
from dpredact.tagging import scrub

if TYPE_CHECKING:
    from dpredact.lm.interface import LanguageModel


class Writing:
    """The lanes of one document, and the accounts behind them. Private inside."""

    def __init__(
        self,
        document: Document,
        policy: Policy,
        model: LanguageModel,
        regions: Sequence[contexts.Region],
        *,
        watch: bool = False,
    ) -> None:
        self.document, self.policy, self.model = document, policy, model
        if policy.baseline is not None and not document.flowing:
            raise PolicyError(
                "a baseline is for plain texts", next_step="compare on .txt files",
                place=document.name,
            )  # fmt: skip
        instruction = prompts.SPANS if policy.scope == "spans" else prompts.REWRITE
        self._frame = prompts.frame(model, instruction, policy.placeholder)
        if len(self._frame) > planning.PROMPT:
            raise ModelError(
                "this model's chat template is longer than the room kept for it",
                next_step="use a model with a shorter chat template",
            )
        self.plan = planning.plan(
            document, policy, regions, model.encode, model.vocab_size, model.window
        )
        kind = mixing.Mixer if policy.baseline is None else mixing.BaselineMixer
        self.mixer = kind(self.plan.promise, policy)
        if watch:
            self.mixer.watch()
        if policy.baseline is None:
            self._support = decoding.support_of(self.plan.promise, policy, model.controls)
        else:
            self._support = decoding.Support(None, 0.0)
        self.lanes = [self._lane(unit) for unit in self.plan.units]

    def _lane(self, unit: planning.Unit) -> decoding.Lane:
        encode, token = self.model.encode, self.policy.placeholder == "token"
        if self.policy.baseline is not None:
            clear = encode(self.document.text[unit.context.start : unit.context.end])
            row = self._frame.wrap(clear)
            return decoding.lane(
                {None: row}, self.mixer, self._support, width=len(row), limit=unit.limit
            )
        lead = encode(unit.lead) if unit.lead else []
        rows: dict[str | None, Sequence[int]] = {
            view: [*self._frame.wrap(unit.context.ids(encode, view)), *lead]
            for view in (None, *unit.views)
        }
        sizes: dict[str, Any] = {
            "width": len(rows[None]) + (0 if token else self.policy.view_reserve),
            "limit": unit.limit,
        }
        if unit.slot is None:
            sizes["no_repeat"] = self.policy.decoding.no_repeat
            sizes["least"] = min(unit.limit // 2, unit.length // 4)
        elif unit.follow:
            # The text goes on as it did: the first public token after the span ends it.
            sizes["ends"] = frozenset(encode(unit.follow)[:1])
        return decoding.lane(rows, self.mixer, self._support, **sizes)

    def finish(self) -> tuple[list[Edit], str]:
        """Edits in order, and 'stop' or 'length'. A function of drawn tokens and skeleton."""
        edits = [label_edit(r) for r in self.plan.kept]
        finished = "length" if self.plan.cut else "stop"
        for unit, lane in zip(self.plan.units, self.lanes, strict=True):
            text = readable(self.model.decode(lane.ids))
            if unit.slot is None:
                text = self._tidy(text)
                finished = finished if lane.finished else "length"
                edits.append(Edit(unit.context.start, unit.context.end, text))
            else:
                closed = close_span(text, unit.slot, ended=lane.finished)
                text = scrub.scrub(closed, self.policy)
                edits.append(Edit(unit.slot.start, unit.slot.end, text))
        return sorted(edits, key=lambda e: e.start), finished

    def _tidy(self, text: str) -> str:
        """Scrubbed patterns become labels; outer white space goes; line ends are the file's."""
        text = scrub.scrub(text.strip(), self.policy)
        source = self.document.text
        if "\r\n" in source and "\n" not in source.replace("\r\n", ""):
            text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        return text

    def drawn(self) -> list[tuple[int, int]]:
        """Stretches of the source text whose replacements the model wrote."""
        return [
            (u.context.start, u.context.end) if u.slot is None else (u.slot.start, u.slot.end)
            for u in self.plan.units
        ]

    def chunks(self) -> list[statement.Chunk]:
        """T of every unit and the views behind it, for the certificate."""
        if self.policy.baseline is not None:
            return [statement.Chunk(self.plan.tokens, (WHOLE,))]
        if self.policy.scope == "document":
            return [statement.Chunk(u.limit, u.views) for u in self.plan.units]
        totals: dict[tuple[str, ...], int] = {}
        for unit in self.plan.units:
            totals[unit.views] = totals.get(unit.views, 0) + unit.limit
        return [statement.Chunk(tokens, views) for views, tokens in totals.items()]


def readable(text: str) -> str:
    """Drawn text without control characters, which some files cannot hold."""
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs", "Cn"))


def label_edit(region: contexts.Region) -> Edit:
    return Edit(region.start, region.end, f"[{region.group}]")


def close_span(text: str, slot: contexts.Slot, *, ended: bool) -> str:
    """A drawn replacement made fit, or its label: from drawn tokens and public text only.

    Label if it is empty, echoes a placeholder, or ran on to its last token without an end.
    """
    line, newline, _ = text.partition("\n")
    line = line.strip()
    echo = any(mark in line for mark in "[]_<>")
    if not line or echo or not (ended or newline):
        return slot.label
    return line
