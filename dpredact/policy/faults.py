"""Validation faults in sentences: which key, what was expected, which known word is near.

Words of the file are never repeated, except in the form of the known word that they
resemble: a document or a word list may have been passed as a policy by mistake.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel

from dpredact.policy.model import Group, Method, Misfit, Policy
from dpredact.policy.nearest import hint

Path = tuple[str | int, ...]

# key -> model of a section; `groups` is a mapping of several and stands apart
_SECTIONS: dict[str, type[BaseModel]] = {
    key: part
    for key, field in Policy.model_fields.items()
    for part in (field.annotation, *get_args(field.annotation))
    if key != "groups" and isinstance(part, type) and issubclass(part, BaseModel)
}
_LIMITS = {
    "greater_than": ("gt", "above"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "below"),
    "less_than_equal": ("le", "at most"),
}
_NUMBER_IN_QUOTES = re.compile(r"\s*[-+]?[0-9._]+([eE][-+]?[0-9]+)?\s*")


@dataclass(frozen=True)
class Fault:
    """One thing wrong. path: keys and list indices from the root; on_key: the key itself."""

    path: Path
    message: str
    on_key: bool = False


def explain(errors: list[Any], data: Any) -> list[Fault]:
    """pydantic's `errors()` about `data`, as one sentence per place."""
    chosen: dict[Path, Any] = {}
    for error in errors:
        path = _in_data(error["loc"], data, missing=error["type"] == "missing")
        # A union complains once per branch: a limit ("above 1") says more than a type.
        if path not in chosen or error["type"] in _LIMITS:
            chosen[path] = error
    return [
        _fault(path, error, data)
        for path, error in chosen.items()
        if not (path == ("max_new_tokens",) and isinstance(error["input"], dict))
    ]


def _in_data(loc: Path, data: Any, *, missing: bool) -> Path:
    """`loc` without the names of union branches, which are no keys of the file."""
    path: list[str | int] = []
    here = data
    for i, step in enumerate(loc):
        if isinstance(here, dict) and (step in here or (missing and i == len(loc) - 1)):
            here = here.get(step)
        elif isinstance(here, list) and isinstance(step, int) and step < len(here):
            here = here[step]
        else:
            continue
        path.append(step)
    return tuple(path)


def _fault(path: Path, error: Any, data: Any) -> Fault:
    kind, value = error["type"], error["input"]
    model, name = _field(path)
    if kind == "extra_forbidden":
        return Fault(path, f"unknown key{hint(path[-1], model.model_fields)}", on_key=True)
    if kind == "missing":
        return Fault(path, f"`{path[-1]}` is missing (expected {_expected(model, name)})")
    if kind == "value_error":
        cause = error["ctx"]["error"]
        deeper = cause.where if isinstance(cause, Misfit) else ()
        return Fault(path + deeper, str(cause), on_key=not deeper)
    if kind in _LIMITS:
        key, word = _LIMITS[kind]
        return Fault(path, f"`{name}` must be {word} {error['ctx'][key]:g}; found {_found(value)}")
    if kind == "finite_number":
        return Fault(path, f"`{name}` must be a finite number")
    if kind == "too_short":
        return Fault(path, f"`{name}` must not be empty")
    if name == "method" and kind == "enum" and isinstance(value, str):
        return Fault(path, f"no such method in this version{hint(value, list(Method))}")
    if kind in ("enum", "literal_error") and isinstance(value, str):
        return Fault(path, f"expected {_expected(model, name)}{_near(error, value)}")
    return Fault(path, f"expected {_expected(model, name)}; found {_found(value)}")


def _near(error: Any, value: str) -> str:
    """The allowed word that `value` resembles, if any; the list stands in `expected`."""
    allowed = re.findall(r"'([^']+)'", error["ctx"]["expected"])
    close = hint(value, allowed)
    return close if "did you mean" in close else "; found another word"


def _field(path: Path) -> tuple[type[BaseModel], str]:
    """The model and the field's name that `path` leads to."""
    if len(path) >= 3 and path[0] == "groups":
        return Group, str(path[2])
    if len(path) >= 2 and path[0] in _SECTIONS:
        return _SECTIONS[str(path[0])], str(path[1])
    return Policy, str(path[0]) if path else "policy"


def _expected(model: type[BaseModel], name: str) -> str:
    """What the field's description promises, up to its first colon."""
    known = model.model_fields.get(name)
    if model is Policy and name == "groups":
        return "groups, each a mapping with entities, method and a budget"
    if known is None or not known.description:
        return "a mapping of keys and values"
    return known.description.partition(":")[0]


def _found(value: Any) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"{value:g}"
        case str() if _NUMBER_IN_QUOTES.fullmatch(value):
            return "text that looks like a number (no quotes, leading zeros or underscores)"
        case str():
            return "text"
        case list():
            return "a list"
    return "a mapping"


