"""Does a certificate hold? From the package alone: no model, network or original."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from importlib import resources
from typing import Any

from dpredact import __version__
from dpredact.certificate import statement
from dpredact.errors import PolicyError
from dpredact.policy import Length, Policy
from dpredact.privacy import accounting
from dpredact.promise import GroupPromise, Promise, promise, view_names


@dataclass(frozen=True)
class Verdict:
    """ok only if `problems` is empty. Each problem is one public sentence."""

    problems: tuple[str, ...]
    epsilon: dict[str, str] = field(default_factory=dict)
    epsilon_all: str = ""
    delta: str = ""

    @property
    def ok(self) -> bool:
        return not self.problems


def schema() -> dict[str, Any]:
    """The JSON Schema of a certificate, as shipped."""
    text = resources.files("dpredact.certificate").joinpath("schema.json").read_text("utf-8")
    return json.loads(text)


def verify(
    text: str | bytes,
    certificate: Mapping[str, Any],
    *,
    max_epsilon: float | None = None,
    policy: Policy | None = None,
) -> Verdict:
    """Check a released text against its certificate.

    text: the released bytes (a str is taken as UTF-8).
    max_epsilon: every group's ε, and that of all groups together, must not exceed it.
    policy: the certificate must have been made under this policy (word lists apart).
    """
    if certificate.get("predicateType") != statement.PREDICATE:
        return Verdict(
            ("this is not a privacy certificate of a version that this dpredact knows "
             f"({statement.PREDICATE})",)
        )  # fmt: skip
    broken = _schema_problems(certificate) if _countable(certificate) else ["a number is out of range"]
    if broken:
        return Verdict(tuple(broken))
    predicate = certificate["predicate"]
    problems = _subject(text, certificate)
    problems += _ledger(predicate)
    drawn = predicate["draw"]
    if not drawn["safe"] or drawn["source"] != "operating system":
        problems.append("the draw was seeded (unsafe): the certificate promises nothing")
    if policy is not None:
        if not _made_under(policy, predicate["policy"]):
            problems.append("it was made under another policy than the one given")
    epsilons = {g["name"]: g["epsilon"] for g in predicate["groups"]}
    whole = predicate["all_groups"]["epsilon"]
    if max_epsilon is not None:
        problems += _too_much(epsilons, whole, max_epsilon)
    return Verdict(tuple(problems), epsilons, whole, predicate["all_groups"]["delta"])


def _made_under(policy: Policy, stated: Mapping[str, Any]) -> bool:
    """Same policy, word lists apart? Fields that came with a later version have their defaults."""
    try:
        return statement.public_policy(Policy.model_validate(stated)) == statement.public_policy(policy)
    except ValueError:
        return False


def _countable(value: Any) -> bool:
    """No NaN, no infinity, nothing that float64 cannot hold: Python's JSON reads all of them."""
    if isinstance(value, Mapping):
        return all(map(_countable, value.values()))
    if isinstance(value, list):
        return all(map(_countable, value))
    return not isinstance(value, (int, float)) or abs(value) < 2.0**63


def _schema_problems(certificate: Mapping[str, Any]) -> list[str]:
    from jsonschema import Draft202012Validator

    found = sorted(
        Draft202012Validator(schema()).iter_errors(certificate), key=lambda e: list(map(str, e.path))
    )
    # The instance itself is not quoted: a stranger's file may hold anything.
    return [
        f"the certificate does not fit its schema at {'/'.join(map(str, e.absolute_path)) or 'the top'}"
        f" ({e.validator})"
        for e in found[:5]
    ]


def _subject(text: str | bytes, certificate: Mapping[str, Any]) -> list[str]:
    data = text.encode("utf-8") if isinstance(text, str) else text
    if hashlib.sha256(data).hexdigest() != certificate["subject"][0]["digest"]["sha256"]:
        return ["the text is not the one that was certified: its SHA-256 differs"]
    return []


def _ledger(predicate: Mapping[str, Any]) -> list[str]:
    """The policy gives the ledger, the ledger gives ε: computed again from the start."""
    if statement.policy_digest(predicate["policy"]) != predicate["policy_sha256"]:
        return ["the policy in the certificate was changed: its digest differs"]
    try:
        policy = Policy.model_validate(predicate["policy"])
    except ValueError:
        return ["the policy in the certificate is not a valid policy"]
    problems = [
        f"{key} is not the policy's"
        for key in ("scope", "mode", "neighbours", "placeholder")
        if predicate[key] != getattr(policy, key)
    ]
    if predicate["tool"]["version"] == __version__:  # other versions may word them otherwise
        own_words = statement.assumptions(policy, safe=predicate["draw"]["safe"])
        if list(predicate["assumptions"]) != own_words:
            problems.append("the assumptions were changed: they are not those of this policy")
    tokens, faults = _tokens(predicate, policy)
    problems += faults + _delta(predicate, policy)
    if not policy.needs_model:
        return problems + _without_model(predicate, policy)
    drawn = predicate["draw"]
    try:
        own = promise(policy, tokens, int(drawn["tokens"]), predicate["max_new_tokens"])
    except (KeyError, PolicyError, ValueError, OverflowError):
        return [*problems, "the policy in the certificate cannot be kept with its own sizes"]
    if (drawn["gamma_log2"], drawn["resolution_log2"]) != (own.draw.gamma_log2, own.draw.resolution_log2):
        problems.append("the draw was quantised in a way that this version does not know")
    return problems + _compare(predicate, own, policy)


def _tokens(predicate: Mapping[str, Any], policy: Policy) -> tuple[dict[str, int], list[str]]:
    """Draws per view, from the chunks; and what is wrong with them."""
    views = view_names(policy)
    chunks = predicate["chunks"]
    problems = []
    if sum(c["tokens"] for c in chunks) != predicate["max_new_tokens"]:
        problems.append("the chunks do not add up to max_new_tokens")
    if any(v not in views for c in chunks for v in c["views"]):
        problems.append("a chunk names a view that the policy does not have")
    limit = policy.max_new_tokens
    most = limit.at_most if isinstance(limit, Length) else limit
    if policy.scope == "document" and predicate["max_new_tokens"] > most:
        problems.append("more tokens could be drawn than the policy allows")
    return {v: sum(c["tokens"] for c in chunks if v in c["views"]) for v in views}, problems


def _compare(predicate: Mapping[str, Any], own: Promise, policy: Policy) -> list[str]:
    problems = []
    stated = {g["name"]: g for g in predicate["groups"]}
    missing = [g.name for g in own.groups if g.name not in stated]
    problems += [f"group {name} of the policy is missing" for name in missing]
    if len(stated) != len(predicate["groups"]) or len(stated) + len(missing) > len(own.groups):
        problems.append("it lists groups that the policy does not have, or one twice")
    events = []
    for group in own.groups:
        if group.name not in stated:
            continue
        said = stated[group.name]
        if said["method"] != str(group.method):
            problems.append(f"group {group.name}: the method is not the policy's")
            continue
        if (said["members"], said["entities"]) != (list(group.members), list(group.entities)):
            problems.append(f"group {group.name}: members or entities are not the policy's")
        if group.event is None:
            if said["ledger"] or said["epsilon"] != _without_view(group.method):
                problems.append(f"group {group.name}: {group.method} has nothing to account for")
            continue
        try:
            (entry,) = said["ledger"]
            event = statement.event(entry)
            epsilon = accounting.epsilon(event, own.delta, own.draw)
        except (ValueError, KeyError, TypeError, OverflowError):
            problems.append(f"group {group.name}: the ledger is incomplete or not readable")
            continue
        events.append(event)
        if not _follows(event, group, predicate, policy, epsilon):
            problems.append(f"group {group.name}: the ledger does not follow from policy and sizes")
        if not _covers(said["epsilon"], epsilon):
            problems.append(f"group {group.name}: ε is stated as {said['epsilon']}, and the ledger "
                            f"gives {accounting.decimal_up(epsilon)}")  # fmt: skip
    whole = accounting.all_groups_epsilon(
        events, own.delta, own.draw, combine=policy.combine, scope=policy.scope,
        total=predicate["max_new_tokens"],
    )  # fmt: skip
    said_all = predicate["all_groups"]["epsilon"]
    if not _covers(said_all, whole):
        problems.append(
            f"ε for all groups is stated as {said_all}, and the ledger gives "
            f"{accounting.decimal_up(whole)}"
        )
    return problems


def _delta(predicate: Mapping[str, Any], policy: Policy) -> list[str]:
    """δ is the policy's; 0 only where ε is 0 or nothing is promised."""
    own = statement.decimal_delta(policy)
    told = [(g["delta"], "0" if g["epsilon"] in ("0", "none") else own) for g in predicate["groups"]]
    told.append((predicate["all_groups"]["delta"], own))
    return [] if all(said == due for said, due in told) else ["δ is not the policy's"]


def _without_view(method: str) -> str:
    """ε of a group that no private view shows."""
    return "none" if method == "keep" else "0"


def _follows(
    event: accounting.AnyEvent,
    own: GroupPromise,
    predicate: Mapping[str, Any],
    policy: Policy,
    epsilon: float,
) -> bool:
    """Is this ledger entry what the policy gives?

    A certificate of this version must agree to the last digits. One of another version may
    have divided a wished ε otherwise; then kind, tokens, weight and a given order must agree,
    and the entry must stay within the ε that the policy allows.
    """
    assert own.event is not None
    if _same(event, own.event):
        return True
    wished = policy.groups[own.members[0]].epsilon if policy.baseline is None else None
    if predicate["tool"]["version"] == __version__ or wished is None:
        return False
    fixed = ["count", "replace"] + (["weight"] if hasattr(own.event, "weight") else [])
    if policy.groups[own.members[0]].order != "auto":
        fixed.append("order")
    same = all(getattr(event, k, None) == getattr(own.event, k, None) for k in fixed)
    return type(event) is type(own.event) and same and epsilon <= wished * (1 + 1e-9)


def _same(a: accounting.AnyEvent, b: accounting.AnyEvent) -> bool:
    """Equal up to what another platform's logarithm may do to the last digits."""
    if type(a) is not type(b):
        return False
    for key, value in vars(b).items():
        other = getattr(a, key)
        if isinstance(value, (bool, int)) and not isinstance(value, float):
            if other != value:
                return False
        elif not math.isclose(other, value, rel_tol=1e-9, abs_tol=1e-15):
            return False
    return True


def _covers(stated: str, epsilon: float) -> bool:
    """Is the stated decimal at least ε, and no more than its rounding above it?"""
    try:
        value = float(Decimal(stated))
    except InvalidOperation:
        return False
    return epsilon * (1 - 1e-9) <= value <= epsilon + 2e-4 + 1e-9 * epsilon


def _without_model(predicate: Mapping[str, Any], policy: Policy) -> list[str]:
    problems = []
    listed = {g["name"]: g for g in predicate["groups"]}
    if set(listed) != set(policy.groups) or len(listed) != len(predicate["groups"]):
        problems.append("the groups are not those of the policy")
    if any(g["ledger"] or g["epsilon"] != _without_view(g["method"]) for g in predicate["groups"]):
        problems.append("it accounts for groups that have no private view")
    for name, group in listed.items():
        if name in policy.groups and group["method"] != str(policy.groups[name].method):
            problems.append(f"group {name}: the method is not the policy's")
        elif name in policy.groups and group["entities"] != list(policy.groups[name].entities):
            problems.append(f"group {name}: members or entities are not the policy's")
    if predicate["all_groups"]["epsilon"] != "0":
        problems.append("ε for all groups must be 0 where no group has a private view")
    return problems


def _too_much(epsilons: Mapping[str, str], whole: str, most: float) -> list[str]:
    over = []
    for name, value in [*epsilons.items(), ("all groups together", whole)]:
        if value == "none":
            over.append(f"{name}: no promise (keep), so no limit on ε can hold")
        elif not float(value) <= most:
            over.append(f"{name}: ε {value} is above the limit {most:g}")
    return over
