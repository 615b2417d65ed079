"""The policy: what is promised for whom. Every field is public.

This is schema version 1. The classes are frozen values; `dpredact.policy.file` reads them
from YAML with file:line:column errors. Validators raise Misfit with a sentence
that names the number to change, and the key that holds it.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from dpredact.policy import entities as kinds
from dpredact.policy.group import Group, Method, Misfit, Positive, Strict
from dpredact.policy.nearest import hint

__all__ = ["Decoding", "Group", "Length", "Method", "Misfit", "Policy", "TaggerSettings"]

_GROUP_NAME = re.compile(r"[^\W\d_][\w-]{0,31}")


class Length(Strict):
    """T as a multiple of the PUBLIC view's length in tokens, never of the private text's."""

    ratio: Positive = Field(description="a number above 0: T over the public view's tokens")
    at_most: Annotated[int, Field(ge=1)] = Field(
        description="a whole number, 1 or more: the largest T"
    )


class Decoding(Strict):
    """What happens to the public logits before the mix. top_k null: every token."""

    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(
        0.8, description="a number above 0: the soft-max temperature of every view"
    )
    top_k: Annotated[int, Field(ge=1)] | None = Field(
        50, description="a whole number, 1 or more, or null: tokens kept, by public logits alone"
    )
    no_repeat: Annotated[int, Field(ge=2)] | None = Field(
        None, description="a whole number, 2 or more, or null: no run of so many drawn tokens "
        "comes twice (a rule on drawn tokens alone)"
    )
    extended: bool = Field(
        True, description="true or false: keep also tokens within a public slack of the k-th"
    )


class TaggerSettings(Strict):
    """Which taggers run, and how. `lists` is the owner's file; it is never printed."""

    use: tuple[str, ...] = Field(
        ("patterns", "spacy", "onnx", "trained"),
        description="a list of taggers: all of them run",
    )
    language: str = Field("en", description="a language code: of the documents")
    min_score: Annotated[float, Field(ge=0, le=1)] = Field(
        0.5, description="a number from 0 to 1: spans of a model below it are dropped"
    )
    propagate: bool = Field(
        True, description="true or false: tag every further mention of the same words"
    )
    lists: str | None = Field(
        default=None, repr=False, description="a file name: the owner's word lists (YAML)"
    )
    regions: tuple[str, ...] = Field(
        ("US", "GB"), description="a list of country codes: whose phone numbers are looked for"
    )


class Baseline(Strict):
    """A method to compare with. It protects a whole document against any other one, knows no
    public view and no groups, and is not meant for releases (THEORY §7)."""

    method: Literal["dp-decoding", "dp-prompt"] = Field(
        description="dp-decoding (mix with uniform) or dp-prompt (clipped logits)"
    )
    mix_weight: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None, description="a number between 0 and 1: λ of dp-decoding"
    )
    window: Positive | None = Field(
        None, description="a number above 0: width w to which dp-prompt clips the logits"
    )

    @model_validator(mode="after")
    def _own_number(self) -> Baseline:
        own, other = ("mix_weight", "window") if self.method == "dp-decoding" else ("window", "mix_weight")
        if getattr(self, own) is None:
            raise ValueError(f"method {self.method} needs {own}")
        if getattr(self, other) is not None:
            raise Misfit(f"method {self.method} takes no {other}", other)
        return self


class Policy(Strict):
    """Version 1 of the policy file."""

    version: Literal[1] = Field(description="1: the version of this schema")
    groups: dict[str, Group] = Field(
        min_length=1, description="a mapping from group names to groups: who is protected how"
    )
    model: str = Field(
        "smollm2-135m", description="a model's name: from the catalog, a hub id, or a folder"
    )
    scope: Literal["document", "spans"] = Field(
        "document", description="document or spans: rewrite all, or only the tagged words"
    )
    mode: Literal["groups", "single"] = Field(
        "groups", description="groups or single: one private view per group, or one for all"
    )
    neighbours: Literal["remove", "replace"] = Field(
        "remove", description="remove or replace: what the promise compares a document with"
    )
    delta: Annotated[float, Field(gt=0, lt=1)] = Field(
        1e-5, description="a number between 0 and 1: the failure probability δ"
    )
    max_new_tokens: Annotated[int, Field(ge=1)] | Length = Field(
        Length(ratio=1.2, at_most=900),
        description="a whole number, or {ratio, at_most}: T, the most tokens that can be drawn",
    )
    chunk_tokens: Annotated[int, Field(ge=16)] | None = Field(
        None, description="a whole number, 16 or more, or null: write the text in pieces of about "
        "so many public tokens, cut at paragraphs; small models write better so"
    )
    max_span_tokens: Annotated[int, Field(ge=1)] = Field(
        8, description="a whole number, 1 or more: most tokens of one replacement (spans scope)"
    )
    placeholder: Literal["label", "token", "surrogate"] = Field(
        "label", description="label, token or surrogate: what stands for a span in public views"
    )
    decoding: Decoding = Field(
        Decoding(), description="a mapping with temperature, top_k and extended: before the mix"
    )
    combine: Literal["mean", "product"] = Field(
        "mean", description="mean or product: how the groups' distributions are joined"
    )
    tagger: TaggerSettings = Field(
        TaggerSettings(), description="a mapping with use, language, lists, …: the taggers"
    )
    untagged: Literal["refuse", "copy", "rewrite"] = Field(
        "refuse", description="refuse, copy or rewrite: a document in which nothing was tagged"
    )
    view_reserve: Annotated[int, Field(ge=0)] = Field(
        256, description="a whole number: tokens a private view may be longer than the public one"
    )
    baseline: Baseline | None = Field(
        None, description="a mapping with method and its number: for comparison only; the groups "
        "then promise nothing"
    )
    scrub_output: tuple[str, ...] = Field(
        ("EMAIL", "PHONE", "CARD", "IBAN"),
        description="a list of patterns: replaced by labels in the drawn text (free)",
    )

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
        return bool(self.private_groups) or self.baseline is not None

    def weight_of(self, name: str) -> float:
        """w of a group in the mean: its own, or 1/m; 1 in single mode and spans scope."""
        if self.mode == "single" or self.scope == "spans" or self.combine == "product":
            return 1.0
        own = self.groups[name].weight
        return own if own is not None else 1.0 / len(self.private_groups)

    def pace_of(self, name: str) -> float:
        """s of a group's cap rule: its own, or what measured best (docs/EVALUATION.md)."""
        own = self.groups[name].pace
        if own is not None:
            return own
        return 2.0 if self.mode == "single" or self.scope == "spans" else 16.0

    # -- what makes no sense -----------------------------------------------------------

    @field_validator("version", mode="before")
    @classmethod
    def _version(cls, value: Any) -> Any:
        if type(value) is int and value != 1:
            raise ValueError(f"this dpredact reads policies of version 1, not {value}")
        if type(value) is not int:  # true == 1 and 1.0 == 1 in Python
            raise ValueError("version must be the number 1")
        return value

    @field_validator("scrub_output")
    @classmethod
    def _scrubbable(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        known = ("EMAIL", "PHONE", "CARD", "IBAN", "URL", "IP")
        for i, name in enumerate(value):
            if name not in known:
                raise Misfit(f"not a pattern that can be scrubbed{hint(name, known)}", i)
        return value

    @field_validator("groups")
    @classmethod
    def _group_names(cls, value: dict[str, Group]) -> dict[str, Group]:
        for name in value:
            if not _GROUP_NAME.fullmatch(name):  # it becomes a placeholder: [NAME]
                raise ValueError(
                    "a group's name has letters, digits, _ and -, starts with a letter and "
                    "is at most 32 characters long"
                )
        return value

    @model_validator(mode="after")
    def _whole(self) -> Policy:
        if self.baseline is not None:
            self._comparable()
        owner: dict[str, str] = {}
        for name, group in self.groups.items():
            for entity in group.entities:
                if entity in owner and owner[entity] != name:
                    raise Misfit(
                        f"entity {entity} stands in two groups, {owner[entity]} and {name}",
                        *("groups", name, "entities"),
                    )
                owner[entity] = name
        if "other" not in self.groups:
            lost = [
                family if len(gone) == len(types) else ", ".join(gone)
                for family, types in kinds.CORE.items()
                if (gone := [t for t in types if self.group_of(t) is None])
            ]
            if lost:
                raise Misfit(
                    f"no group names {', '.join(lost)}; add them to a group, or declare a "
                    "group `other` that takes every type not named",
                    "groups",
                )
        private = self.private_groups
        if private and self.decoding.temperature == 0:
            raise Misfit(
                "temperature 0 gives no privacy with a private view; use a temperature above 0",
                *("decoding", "temperature"),
            )
        if self.combine == "product" and (
            bad := [n for n, g in private.items() if not g.method.bounds_range]
        ):
            raise Misfit(
                f"combine: product needs range methods; group {bad[0]} uses {private[bad[0]].method}",
                "combine",
            )
        if self.scope == "document":
            for name, group in private.items():
                if group.max_span_tokens is not None:
                    raise Misfit(
                        "max_span_tokens is read by scope: spans only",
                        *("groups", name, "max_span_tokens"),
                    )
        self._weights(private)
        self._single(private)
        return self

    def _comparable(self) -> None:
        """A baseline's promise is about any two documents: nothing may follow the text."""
        if self.scope != "document" or self.chunk_tokens is not None:
            raise Misfit("a baseline writes the whole document in one go", "baseline")
        if isinstance(self.max_new_tokens, Length):
            raise Misfit("a baseline needs a number for max_new_tokens", "max_new_tokens")
        if self.decoding.temperature == 0:
            raise Misfit("a baseline needs a temperature above 0", "decoding", "temperature")

    def _weights(self, private: dict[str, Group]) -> None:
        given = {n: g.weight for n, g in private.items() if g.weight is not None}
        if not given:
            return
        first = next(iter(given))
        if self.mode == "single" or self.scope == "spans" or self.combine == "product":
            raise Misfit(
                "weight is read by the mean over groups of a whole document only",
                *("groups", first, "weight"),
            )
        if without := [n for n in private if n not in given]:
            raise Misfit(
                "give every group with a private view a weight, or none", "groups", without[0]
            )
        if not math.isclose(total := sum(given.values()), 1.0, abs_tol=1e-9):
            raise Misfit(f"weights add up to {total:g}, not to 1", "groups", first, "weight")

    def _single(self, private: dict[str, Group]) -> None:
        if self.mode != "single" or not private:
            return
        first_name, first = next(iter(private.items()))
        for name, group in private.items():
            for key in ("method", "beta", "epsilon", "order", "clip", "range", "spending",
                        "pace", "max_cap", "max_weight", "shift"):  # fmt: skip
                if getattr(group, key) != getattr(first, key):
                    raise Misfit(
                        "mode: single has one budget for all groups with a private view; "
                        f"{first_name} and {name} differ in {key}",
                        *("groups", name, key),
                    )


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of policies, version 1."""
    schema = Policy.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:dpredact:policy:v1",
        **schema,
        "title": "dpredact policy, version 1",
    }
