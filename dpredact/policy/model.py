"""The policy: what is promised for whom. Every field is public.

This is schema version 1. The classes are frozen values; `dpredact.policy.file` reads them
from YAML with file:line:column errors. Validators here raise ValueError with a sentence
that names the number to change; pydantic adds the key.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from dpredact.policy import entities as kinds


class Method(StrEnum):
    """How the words of a group are protected."""

    DP_FUSION = "dp-fusion"
    INVISIBLE_INK = "invisible-ink"
    CID = "cid"
    POINTWISE = "pointwise"
    REDACT = "redact"
    KEEP = "keep"

    @property
    def private_view(self) -> bool:
        """Does this method read a view that shows the group's words?"""
        return self not in (Method.REDACT, Method.KEEP)

    @property
    def bounds_range(self) -> bool:
        """Is the promise a width of log ratios (any order), rather than a cap at one order?"""
        return self in (Method.INVISIBLE_INK, Method.CID, Method.POINTWISE)


class Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Group(Strict):
    """One privacy group: which entities, which method, how much may leak."""

    entities: tuple[str, ...] = Field(min_length=1)
    method: Method
    beta: Positive | None = None  # DP-Fusion's β: the cap of one token is order × beta
    epsilon: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    order: Annotated[float, Field(gt=1, allow_inf_nan=False)] | Literal["auto"] = "auto"
    clip: Positive | None = None  # InvisibleInk's C, in logits
    range: Positive | None = None  # width η of one token's log ratios, in nats
    weight: Annotated[float, Field(gt=0, le=1)] | None = None  # share in the mean; default 1/m
    spending: Literal["fixed", "adaptive"] = "fixed"
    pace: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 16.0  # s of the filter's cap rule
    max_cap: Positive | None = None  # c_max of the filter; default: no further limit
    max_weight: Positive = 1.0  # cid's λ_max
    shift: Literal["none", "median"] = "none"  # invisible-ink: where the clip window sits
    max_span_tokens: Annotated[int, Field(ge=1)] | None = None  # spans scope

    @field_validator("entities", mode="before")
    @classmethod
    def _known(cls, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            out = []
            for name in value:
                try:
                    out.append(kinds.canonical(name))
                except (KeyError, TypeError):
                    raise ValueError(f"unknown entity type {name!r}") from None
            return tuple(out)
        return value

    @model_validator(mode="after")
    def _budget(self) -> Group:
        named = [k for k in ("beta", "epsilon", "clip", "range") if getattr(self, k) is not None]
        if not self.method.private_view:
            if named:
                raise ValueError(f"method {self.method} takes no {named[0]}: nothing is spent")
            return self
        allowed = {
            Method.DP_FUSION: ("beta", "epsilon"),
            Method.INVISIBLE_INK: ("clip", "epsilon"),
            Method.CID: ("range", "epsilon"),
            Method.POINTWISE: ("range", "epsilon"),
        }[self.method]
        if len(named) != 1 or named[0] not in allowed:
            raise ValueError(
                f"method {self.method} needs exactly one of {' or '.join(allowed)}; "
                f"found {', '.join(named) or 'none'}"
            )
        if self.spending == "adaptive" and self.epsilon is None:
            raise ValueError("adaptive spending needs epsilon: it is the budget that is paced")
        if self.beta is not None and self.order == "auto":
            raise ValueError("beta needs a number for order: the cap of one token is order × beta")
        if self.method.bounds_range and self.order != "auto":
            raise ValueError(f"method {self.method} holds at every order; leave order out")
        return self


class Length(Strict):
    """T as a multiple of the PUBLIC view's length in tokens, never of the private text's."""

    ratio: Positive
    at_most: Annotated[int, Field(ge=1)]


class Decoding(Strict):
    """What happens to the public logits before the mix. top_k null: every token."""

    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.8
    top_k: Annotated[int, Field(ge=1)] | None = 50
    extended: bool = True  # keep tokens within a public slack of the k-th (InvisibleInk's top-k⁺)


class TaggerSettings(Strict):
    """Which taggers run, and how. `lists` is the owner's file; it is never printed."""

    use: tuple[str, ...] = ("patterns", "spacy", "onnx")
    language: str = "en"
    min_score: Annotated[float, Field(ge=0, le=1)] = 0.5
    propagate: bool = True
    lists: str | None = Field(default=None, repr=False)
    regions: tuple[str, ...] = ("US", "GB")


class Policy(Strict):
    """Version 1 of the policy file."""

    version: Literal[1]
    groups: dict[str, Group] = Field(min_length=1)
    model: str = "smollm2-135m"
    scope: Literal["document", "spans"] = "document"
    mode: Literal["groups", "single"] = "groups"
    neighbours: Literal["remove", "replace"] = "remove"
    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-5
    max_new_tokens: Annotated[int, Field(ge=1)] | Length = Length(ratio=1.2, at_most=900)
    max_span_tokens: Annotated[int, Field(ge=1)] = 8
    placeholder: Literal["label", "token", "surrogate"] = "label"
    decoding: Decoding = Decoding()
    combine: Literal["mean", "product"] = "mean"
    tagger: TaggerSettings = TaggerSettings()
    untagged: Literal["refuse", "copy", "rewrite"] = "refuse"
    view_reserve: Annotated[int, Field(ge=0)] = 256
    scrub_output: tuple[str, ...] = ("EMAIL", "PHONE", "CARD", "IBAN")

    # -- who belongs where -------------------------------------------------------------

    def group_of(self, entity: str) -> str | None:
        """Name of the group that protects `entity`; None if this policy does not look for it."""
        entity = kinds.canonical(entity)
        for wanted in (entity, kinds.FAMILY_OF.get(entity)):
            for name, group in self.groups.items():
                if wanted in group.entities:
                    return name
        return "other" if "other" in self.groups else None

    @property
    def private_groups(self) -> dict[str, Group]:
        """Groups whose method has a private view, in policy order (THEORY §1: m of them)."""
        return {n: g for n, g in self.groups.items() if g.method.private_view}

    @property
    def needs_model(self) -> bool:
        return bool(self.private_groups)

    def weight_of(self, name: str) -> float:
        """w of a group in the mean: its own, or 1/m; 1 in single mode and spans scope."""
        if self.mode == "single" or self.scope == "spans" or self.combine == "product":
            return 1.0
        own = self.groups[name].weight
        return own if own is not None else 1.0 / len(self.private_groups)

    # -- what makes no sense -----------------------------------------------------------

    @field_validator("scrub_output")
    @classmethod
    def _scrubbable(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        known = ("EMAIL", "PHONE", "CARD", "IBAN", "URL", "IP")
        for name in value:
            if name not in known:
                raise ValueError(f"{name!r} is not one of {', '.join(known)}")
        return value

    @model_validator(mode="after")
    def _whole(self) -> Policy:
        owner: dict[str, str] = {}
        for name, group in self.groups.items():
            for entity in group.entities:
                if entity in owner and owner[entity] != name:
                    raise ValueError(
                        f"entity {entity} stands in two groups, {owner[entity]} and {name}"
                    )
                owner[entity] = name
        if "other" not in self.groups:
            lost = [t for f in kinds.CORE for t in kinds.CORE[f] if self.group_of(t) is None]
            if lost:
                raise ValueError(
                    f"no group names {', '.join(lost)}; add them to a group, or declare a "
                    "group `other` that takes every type not named"
                )
        private = self.private_groups
        if private and self.decoding.temperature == 0:
            raise ValueError(
                "temperature 0 gives no privacy with a private view; use a temperature above 0"
            )
        if self.combine == "product" and (
            bad := [n for n, g in private.items() if not g.method.bounds_range]
        ):
            raise ValueError(
                f"combine: product needs range methods; group {bad[0]} uses {private[bad[0]].method}"
            )
        self._weights(private)
        self._single(private)
        return self

    def _weights(self, private: dict[str, Group]) -> None:
        given = [g.weight for g in private.values() if g.weight is not None]
        if not given or self.mode == "single":
            return
        if len(given) != len(private):
            raise ValueError("give every group with a private view a weight, or none")
        if not math.isclose(sum(given), 1.0, abs_tol=1e-9):
            raise ValueError(f"weights add up to {sum(given):g}, not to 1")

    def _single(self, private: dict[str, Group]) -> None:
        if self.mode != "single" or not private:
            return
        first_name, first = next(iter(private.items()))
        for name, group in private.items():
            for key in ("method", "beta", "epsilon", "order", "clip", "range", "spending",
                        "pace", "max_cap", "max_weight", "shift"):  # fmt: skip
                if getattr(group, key) != getattr(first, key):
                    raise ValueError(
                        f"mode: single has one budget for all groups with a private view; "
                        f"{first_name} and {name} differ in {key}"
                    )
