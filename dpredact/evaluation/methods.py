"""The methods that are compared, written in one line each: `dp-fusion:epsilon=8,mode=single`.

A method with a promise is a policy, and what is measured is the package's own mixer under
that policy. The others are what a comparison needs: the original, the masked text, rewriting
without protection, and two baselines that protect a whole document.

    original                  the text itself                     no promise
    masked                    every span replaced by its label    no model at all
    public                    rewritten from the public view      ε = 0
    paraphrase                rewritten from the text in clear    no promise
    mean-views                λ = 1 for every group               no promise
    dp-decoding:weight=0.9    mixed with the uniform distribution
    dp-prompt:window=50       logits clipped to a window; temperature=1.75
    dp-fusion | invisible-ink | cid | pointwise    a policy; keys below
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpredact import policy as policies
from dpredact.errors import PolicyError, UsageError
from dpredact.policy import Decoding, Group, Method, Policy, TaggerSettings
from dpredact.policy.nearest import hint

# The groups of the Text Anonymization Benchmark, as in the published comparisons.
GROUPS: dict[str, tuple[str, ...]] = {
    "PERSON": ("PERSON",),
    "CODE": ("EMAIL", "PHONE", "CARD", "IBAN", "ID"),
    "LOC": ("LOCATION", "ADDRESS"),
    "ORG": ("ORG",),
    "DEM": ("DEMOGRAPHIC", "AGE"),
    "DATETIME": ("DATE", "TIME"),
    "QUANTITY": ("QUANTITY",),
    "MISC": ("MISC",),
}

UNPROTECTED = ("original", "masked", "public", "paraphrase", "mean-views")
BASELINES = {"dp-decoding": ("weight",), "dp-prompt": ("window",)}
_POLICY_KEYS = ("mode", "combine", "scope", "neighbours", "delta", "placeholder", "max_span_tokens",
                "view_reserve")  # fmt: skip
_GROUP_KEYS = ("epsilon", "beta", "order", "spending", "pace", "max_cap", "max_weight", "shift",
               "clip", "range")  # fmt: skip
_DECODING_KEYS = ("temperature", "top_k", "extended", "no_repeat")


@dataclass(frozen=True)
class Setting:
    """What all methods of one comparison share.

    tokens: T, or None for 1.2 × the public view's length. temperature: of methods that name
    none. top_k: of methods that name none; None is every token.
    """

    groups: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: dict(GROUPS))
    model: str = "smollm2-135m"
    delta: float = 1e-5
    tokens: int | None = None
    temperature: float = 1.0
    top_k: int | None = 50
    placeholder: str = "label"


@dataclass(frozen=True)
class MethodSpec:
    """One line of a comparison. `policy` for everything whose rows the mixer joins."""

    name: str  # as written by the user, or the policy file's name
    kind: str  # 'original', 'masked', …, a baseline, or 'policy'
    policy: Policy | None = None
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def promises(self) -> bool:
        return self.kind == "policy" or self.kind in BASELINES


def parse(text: str, setting: Setting) -> MethodSpec:
    """A method from its one-line form, or from a policy file's path.

    Raises UsageError for an unknown method or key, PolicyError for values that clash.
    """
    if text.endswith((".yaml", ".yml")):
        return MethodSpec(Path(text).stem, "policy", policies.load(Path(text)), {"file": text})
    name, _, rest = text.partition(":")
    values = {}
    for pair in filter(None, rest.split(",")):
        key, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"{pair!r} is no key=value", next_step=_FORM, place=text)
        values[key.strip()] = _value(value.strip())
    if name in UNPROTECTED or name in BASELINES:
        needed = BASELINES.get(name, ())
        if set(values) - {*needed, "temperature"} or set(needed) - set(values):
            raise UsageError(
                f"{name} takes {' and '.join((*needed, 'temperature'))}",
                next_step=_FORM, place=text,
            )  # fmt: skip
        shared = {"temperature": setting.temperature, "top_k": setting.top_k,
                  "delta": setting.delta, "tokens": setting.tokens}  # fmt: skip
        return MethodSpec(text, name, None, {**shared, **values})
    if name not in [m.value for m in Method if m.private_view]:
        known = [*UNPROTECTED, *BASELINES, *(m.value for m in Method if m.private_view)]
        raise UsageError(f"no such method{hint(name, known)}", next_step=_FORM, place=text)
    return MethodSpec(text, "policy", _policy(name, values, setting, text), values)


_FORM = "write method:key=value,key=value, for instance dp-fusion:epsilon=8,mode=single"


def _value(text: str) -> Any:
    if text in ("true", "false", "none", "null"):
        return {"true": True, "false": False}.get(text)
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def _policy(name: str, values: Mapping[str, Any], setting: Setting, text: str) -> Policy:
    known = (*_POLICY_KEYS, *_GROUP_KEYS, *_DECODING_KEYS, "tokens", "present")
    for key in values:
        if key not in known:
            raise UsageError(f"no such key{hint(key, known)}", next_step=_FORM, place=text)
    group = {k: values[k] for k in _GROUP_KEYS if k in values}
    decoding = {"temperature": setting.temperature, "top_k": setting.top_k}
    decoding |= {k: values[k] for k in _DECODING_KEYS if k in values}
    top = {"delta": setting.delta, "placeholder": setting.placeholder}
    top |= {k: values[k] for k in _POLICY_KEYS if k in values}
    tokens = values.get("tokens", setting.tokens)
    if tokens is not None:
        top["max_new_tokens"] = tokens
    try:
        return Policy(
            version=1,
            model=setting.model,
            groups={
                g: Group(entities=e, method=Method(name), **group)
                for g, e in setting.groups.items()
            },
            decoding=Decoding(**decoding),
            tagger=TaggerSettings(),
            untagged="rewrite",
            scrub_output=(),
            **top,
        )
    except ValueError as fault:
        # pydantic's message quotes values of the method's own line, nothing of a document.
        first = str(fault).splitlines()
        said = next((x.strip() for x in first[1:] if x.startswith("  ")), first[0])
        raise PolicyError(said.split(" [type=")[0], next_step=_FORM, place=text) from None


def present(policy: Policy, groups: Sequence[str]) -> Policy:
    """`policy` with the groups that have a span here only: the skeleton says which, so m may.

    The others are redacted, which is the same for a document without their spans.
    """
    kept = {
        name: group if name in groups or not group.method.private_view
        else Group(entities=group.entities, method=Method.REDACT)
        for name, group in policy.groups.items()
    }  # fmt: skip
    return policy.model_copy(update={"groups": kept})


def parse_all(texts: Sequence[str], setting: Setting) -> list[MethodSpec]:
    """Methods in order; the same line twice is an error."""
    specs = [parse(t, setting) for t in texts]
    names = [s.name for s in specs]
    if twice := next((n for n in names if names.count(n) > 1), None):
        raise UsageError("this method is named twice", next_step="name it once", place=twice)
    return specs

