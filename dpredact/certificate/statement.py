"""The privacy certificate: an in-toto Statement about one released file.

Everything in it is a function of the policy, the skeleton's public sizes and the released
bytes. It never holds λ, realised losses, the number of draws made, a seed, a digest of the
input, a word list or an absolute path (THEORY §5).
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from dpredact import __version__
from dpredact.policy import Policy
from dpredact.privacy import accounting
from dpredact.privacy.accounting import AnyEvent
from dpredact.promise import GroupPromise, Promise

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:dpredact:privacy-certificate:v1"

KINDS: dict[str, type] = {
    "order-cap": accounting.OrderCap,
    "two-hop-cap": accounting.TwoHopCap,
    "range": accounting.Range,
    "filter": accounting.Filter,
    "two-hop-filter": accounting.TwoHopFilter,
    "range-filter": accounting.RangeFilter,
    "pure": accounting.Pure,  # baselines
}
_NAME = re.compile(r"(?!\.)[\w.-]+(/[\w.-]+)?")  # of the catalog or the hub; else a folder
_KIND_OF = {cls: kind for kind, cls in KINDS.items()}


@dataclass(frozen=True)
class Chunk:
    """One stretch that was written in one go: its T and the views that differ from view 0."""

    tokens: int
    views: tuple[str, ...]


@dataclass(frozen=True)
class ModelFacts:
    id: str
    digest: str
    dtype: str
    device: str


def build(
    name: str,
    data: bytes,
    policy: Policy,
    promise: Promise | None,
    chunks: Sequence[Chunk],
    model: ModelFacts | None,
    *,
    safe: bool,
    finished: str,
) -> dict[str, Any]:
    """The certificate of `data`, released under `name`. `promise` None: no group had a view."""
    groups = promise.groups if promise is not None else ()
    delta = decimal_delta(policy)
    predicate: dict[str, Any] = {
        "document": str(uuid.uuid4()),
        "tool": {"name": "dpredact", "version": __version__},
        "model": asdict(model) if model is not None else None,
        "policy": public_policy(policy),
        "policy_sha256": policy_digest(public_policy(policy)),
        "scope": policy.scope,
        "mode": policy.mode,
        "neighbours": policy.neighbours,
        "placeholder": policy.placeholder,
        "max_new_tokens": sum(c.tokens for c in chunks),
        "chunks": [{"tokens": c.tokens, "views": list(c.views)} for c in chunks],
        "draw": _draw(promise, safe),
        "groups": [_group(g, delta) for g in groups],
        "all_groups": {
            "epsilon": promise.epsilon_all_text if promise is not None else "0",
            "delta": delta,
        },
        "finished": finished,
        "assumptions": assumptions(policy, safe=safe),
    }
    return {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": hashlib.sha256(data).hexdigest()}}],
        "predicateType": PREDICATE,
        "predicate": predicate,
    }


def decimal_delta(policy: Policy) -> str:
    return format(Decimal(repr(policy.delta)), "f")


def _draw(promise: Promise | None, safe: bool) -> dict[str, Any]:
    facts: dict[str, Any] = {"safe": safe, "source": "operating system" if safe else "unsafe seed"}
    if promise is not None:
        facts |= asdict(promise.draw)
    return facts


def _group(group: GroupPromise, delta: str) -> dict[str, Any]:
    return {
        "name": group.name,
        "members": list(group.members),
        "entities": list(group.entities),
        "method": str(group.method),
        "epsilon": "none" if group.method == "keep" else group.epsilon_text,
        "delta": "0" if group.event is None or group.epsilon == 0 else delta,
        "ledger": [] if group.event is None else [entry(group.event)],
    }


def entry(event: AnyEvent) -> dict[str, Any]:
    """A ledger entry: what was released, with the numbers that its loss follows from."""
    fields = asdict(event)
    fields["tokens"] = fields.pop("count")
    return {"kind": _KIND_OF[type(event)], **fields}


def event(entry: Mapping[str, Any]) -> AnyEvent:
    """The event of a ledger entry. KeyError, TypeError or ValueError if it is not one."""
    fields = dict(entry)
    cls = KINDS[fields.pop("kind")]
    fields["count"] = fields.pop("tokens")
    return cls(**fields)


def public_policy(policy: Policy) -> dict[str, Any]:
    """The policy as JSON values, without the owner's word lists."""
    dump = policy.model_dump(mode="json")
    dump["tagger"].pop("lists", None)
    parts = [name.partition(":") for name in policy.tagger.use]  # some are KIND:FOLDER
    dump["tagger"]["use"] = [f"{kind}:{_last(path)}" if colon else kind for kind, colon, path in parts]
    if not _NAME.fullmatch(policy.model):
        dump["model"] = _last(policy.model)
    return dump


def _last(path: str) -> str:
    """A folder's own name, on any system: the way to it stays with its owner."""
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1].strip(".~") or "local"


def policy_digest(dump: Mapping[str, Any]) -> str:
    canonical = json.dumps(dump, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode("utf-8")).hexdigest()


def assumptions(policy: Policy, *, safe: bool) -> list[str]:
    """What the numbers rest on, in sentences."""
    shows = {
        "label": "which group each span belongs to",
        "token": "which group each span belongs to and how many tokens it has",
        "surrogate": "which group each span belongs to and which spans are the same person",
    }[policy.placeholder]
    neighbour = {
        "remove": "the same document with the tagged words of the group left out",
        "replace": "the same document with other words in the tagged places of the group",
    }[policy.neighbours]
    if policy.baseline is not None:
        return [
            "COMPARISON ONLY: the promise compares the release with that of any other document of "
            "the same policy; it has no groups, and nothing of the text is public.",
            *(["UNSAFE: the draw was seeded."] if not safe else []),
        ]
    lines = [
        "Only tagged words are covered: a mention that the taggers missed is public text.",
        "The skeleton is public: all untagged text, the place of every tagged span, and " + shows + ".",
        f"The promise of a group compares the release with that of {neighbour}.",
        "A person whose data lie in several groups is covered by the number for all groups.",
        "Whether a document was refused or could not be read is not covered, nor is the time it took.",
        "Further releases of the same document add up; this certificate counts one.",
    ]
    if any(g.method == "keep" for g in policy.groups.values()):
        lines.append("Words of groups with method keep stand in the release as they are.")
    if not safe:
        lines.append("UNSAFE: the draw was seeded; whoever knows the seed can undo the protection.")
    return lines
