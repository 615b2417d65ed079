"""One document before the model: its skeleton, its groups, and the rows that methods read.

A scene has one row per view: the public one, one per group with a span, and the row that
shows every group at once (what an unprotected model, a single-view policy and the baselines
read). Private inside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dpredact import contexts, prompts
from dpredact.evaluation.corpus import Item
from dpredact.evaluation.methods import Setting
from dpredact.policy import Group, Method, Policy

ALL = "*"  # the row that shows every group

Encode = Callable[[str], list[int]]


def measuring_policy(setting: Setting) -> Policy:
    """The groups of a comparison, each with a private view; nothing is promised by it."""
    return Policy(
        version=1,
        model=setting.model,
        groups={
            name: Group(entities=e, method=Method.DP_FUSION, epsilon=1.0)
            for name, e in setting.groups.items()
        },
        placeholder=setting.placeholder,
    )


@dataclass(frozen=True)
class Scene:
    """A document as pieces and slots."""

    item: Item
    context: contexts.Context = field(repr=False)

    @property
    def groups(self) -> tuple[str, ...]:
        """Groups with a span here, in order of first appearance."""
        return self.context.views()

    def row(self, frame: prompts.Frame, encode: Encode, view: str | None) -> list[int]:
        """Ids of one row: None the public view, a group's name, or ALL."""
        if view != ALL:
            return frame.wrap(self.context.ids(encode, view))
        return frame.wrap(self.in_one_view().ids(encode, ALL))

    def in_one_view(self) -> contexts.Context:
        """The same stretch with all private spans in the one view ALL."""
        return replace(
            self.context,
            pieces=tuple(
                replace(p, view=ALL) if isinstance(p, contexts.Slot) and p.view else p
                for p in self.context.pieces
            ),
        )

    def with_words(self, words: Mapping[int, str]) -> Scene:
        """Other words in some slots: number of the slot in reading order -> words."""
        pieces: list[str | contexts.Slot] = []
        number = 0
        for piece in self.context.pieces:
            if isinstance(piece, contexts.Slot):
                piece = replace(piece, words=words.get(number, piece.words))
                number += 1
            pieces.append(piece)
        return replace(self, context=replace(self.context, pieces=tuple(pieces)))

    def original(self, encode: Encode) -> tuple[list[int], list[str | None]]:
        """The text's own tokens, and the group that each belongs to (None: public text).

        Encoded in pieces, a blank before a span with the span, as tokenizers want words.
        """
        ids: list[int] = []
        owner: list[str | None] = []
        lead = ""
        for place, piece in enumerate(self.context.pieces):
            if isinstance(piece, str):
                text, lead = piece, ""
                after = self.context.pieces[place + 1 : place + 2]
                if after and text.endswith(" "):
                    text, lead = text[:-1], " "
                own = encode(text)
                owner += [None] * len(own)
            else:
                own = encode(lead + piece.words)
                lead = ""
                owner += [piece.group] * len(own)
            ids += own
        return ids, owner


def scene(item: Item, policy: Policy) -> Scene:
    """The scene of one document under a policy's groups."""
    found = contexts.regions(item.spans, policy)
    built = contexts.build(item.text, found, policy, 0, len(item.text), contexts.Numbering())
    return Scene(item, built)


def scenes(items: Sequence[Item], setting: Setting) -> list[Scene]:
    policy = measuring_policy(setting)
    return [scene(item, policy) for item in items]
