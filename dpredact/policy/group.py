"""One privacy group: which entities, which method, how much may leak."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from dpredact.policy import entities as kinds
from dpredact.policy.nearest import nearest


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


class Misfit(ValueError):
    """A fault whose place is deeper than the value that was being checked.

    where: keys and indices from that value downwards.
    """

    def __init__(self, message: str, *where: str | int) -> None:
        self.where = where
        super().__init__(message)


Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_FAMILIES = ", ".join(kinds.FAMILIES)

# Settings that only some groups read. Elsewhere a value other than the default is an error:
# a setting that silently does nothing would be a promise not kept.
_ONLY_FOR: dict[str, tuple[tuple[str, ...], str]] = {
    "max_weight": ((Method.CID,), "method: cid"),
    "shift": ((Method.INVISIBLE_INK,), "method: invisible-ink"),
}


class Group(Strict):
    """One privacy group: which entities, which method, how much may leak."""

    entities: tuple[str, ...] = Field(
        min_length=1, description="a list of entity types: names of types or of whole families"
    )
    method: Method = Field(description=f"one of {', '.join(Method)}: how the words are protected")
    beta: Positive | None = Field(
        None, description="a number above 0: DP-Fusion's β; the cap of one token is order × beta"
    )
    epsilon: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        None, description="a number, 0 or more: the whole document's ε for this group, in nats"
    )
    order: Annotated[float, Field(gt=1, allow_inf_nan=False)] | Literal["auto"] = Field(
        "auto", description="a number above 1, or auto: the Rényi order α"
    )
    clip: Positive | None = Field(
        None, description="a number above 0: InvisibleInk's clip C, in logits"
    )
    range: Positive | None = Field(
        None, description="a number above 0: width of one token's log ratios, in nats"
    )
    weight: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None, description="a number above 0, at most 1: share in the mean; default 1/m, or, where "
        "every budget is an epsilon, one over the groups that have a span"
    )
    spending: Literal["fixed", "adaptive"] = Field(
        "fixed", description="fixed or adaptive: the same cap each token, or a paced budget"
    )
    pace: Annotated[float, Field(ge=1, allow_inf_nan=False)] | None = Field(
        None, description="a number, 1 or more: s of the adaptive cap rule; default 16 for groups of "
        "a document, 2 in single mode and spans scope, where most tokens need budget"
    )
    max_cap: Positive | None = Field(
        None, description="a number above 0: largest cap of adaptive spending; default no limit"
    )
    max_weight: Positive = Field(1.0, description="a number above 0: largest λ of cid")
    shift: Literal["none", "median"] = Field(
        "none", description="none or median: where invisible-ink's clip window sits"
    )
    max_span_tokens: Annotated[int, Field(ge=1)] | None = Field(
        None, description="a whole number, 1 or more: most tokens of one span (spans scope)"
    )

    @field_validator("entities", mode="before")
    @classmethod
    def _known(cls, value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            return value
        out = []
        for i, name in enumerate(value):
            try:
                out.append(kinds.canonical(name))
            except (KeyError, TypeError):
                close = nearest(name, kinds.NAMES)
                tip = f"; did you mean `{close}`?" if close else f"; families: {_FAMILIES}"
                raise Misfit(f"unknown entity type{tip}", i) from None
        return tuple(out)

    @model_validator(mode="after")
    def _budget(self) -> Group:
        named = [k for k in ("beta", "epsilon", "clip", "range") if getattr(self, k) is not None]
        if not self.method.private_view:
            idle = named + self._changed("order", "weight", "spending", "pace", "max_cap",
                                         "max_weight", "shift", "max_span_tokens")  # fmt: skip
            if idle:
                raise Misfit(
                    f"method {self.method} takes no {idle[0]}: it reads no private view", idle[0]
                )
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
                f"found {' and '.join(named) or 'none'}"
            )
        if self.spending == "adaptive" and self.epsilon is None:
            raise Misfit(
                "adaptive spending needs epsilon: it is the budget that is paced", "spending"
            )
        if self.beta is not None and self.order == "auto":
            raise Misfit(
                "beta needs a number for order: the cap of one token is order × beta", "beta"
            )
        if self.method.bounds_range and self.order != "auto":
            raise Misfit(f"method {self.method} holds at every order; leave order out", "order")
        if self.spending == "fixed" and (idle := self._changed("pace", "max_cap")):
            raise Misfit(f"{idle[0]} is read by spending: adaptive only", idle[0])
        for key, (methods, reader) in _ONLY_FOR.items():
            if self.method not in methods and self._changed(key):
                raise Misfit(f"{key} is read by {reader} only", key)
        return self

    def _changed(self, *keys: str) -> list[str]:
        """Those of `keys` that differ from their defaults."""
        return [k for k in keys if getattr(self, k) != type(self).model_fields[k].default]
