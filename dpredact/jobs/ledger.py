"""What every release of the same document has cost, over all runs: the owner's ledger.

A line is written and synced before the first token is drawn, so a crash between spending
and writing counts as spent. Documents are known by an HMAC under the owner's key, never by
a plain hash. Rényi losses add at one common order (THEORY §4), so the sum is converted
once, over the orders that every entry knows. The file is the owner's: mode 0600.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dpredact.certificate import statement
from dpredact.errors import BudgetExceeded, DpredactError, UsageError
from dpredact.policy import Policy
from dpredact.privacy import accounting
from dpredact.privacy.accounting import Draw
from dpredact.promise import Promise

ALL = "all groups together"


class LedgerError(DpredactError):
    """The ledger cannot be read or written; nothing may be spent."""

    fatal = True


@dataclass(frozen=True)
class Spent:
    """What all releases of one document cost together. ε at `delta`, as numbers."""

    releases: int
    epsilon: dict[str, float]
    epsilon_all: float
    delta: float


class Ledger:
    """One ledger file. `limit`: ε that neither a group nor all of them together may pass."""

    def __init__(self, path: Path, key: bytes, limit: float | None = None) -> None:
        if path.is_dir():
            raise UsageError("the ledger is a folder", place=str(path), next_step="name a file")
        self._path, self._key, self._limit = path, key, limit

    def __repr__(self) -> str:
        return f"Ledger({self._path.name!r})"

    def document(self, data: bytes) -> str:
        """The name of a document in this ledger: an HMAC of its bytes."""
        return hmac.new(self._key, b"ledger\0" + data, hashlib.sha256).hexdigest()

    def spent(self, data: bytes, delta: float) -> Spent:
        """What `data` has cost so far."""
        return self._total(self._of(self.document(data)), delta)

    def after(self, data: bytes, policy: Policy, promise: Promise) -> Spent:
        """What it would have cost after one more release under `promise`; nothing is spent."""
        entries = [*self._of(self.document(data)), _entry("", policy, promise)]
        return self._total(entries, promise.delta)

    def spend(self, data: bytes, policy: Policy, promise: Promise) -> None:
        """Write one release down, synced to disk. Raises BudgetExceeded before that if it
        would pass the limit; then nothing is written."""
        from filelock import FileLock

        name = self.document(data)
        with FileLock(f"{self._path}.lock"):
            entries = self._of(name)
            entry = _entry(name, policy, promise)
            if self._limit is not None:
                self._within(self._total([*entries, entry], promise.delta), len(entries))
            self._append(entry)

    def _within(self, total: Spent, before: int) -> None:
        over = [(n, e) for n, e in [*total.epsilon.items(), (ALL, total.epsilon_all)]
                if e > float(self._limit or 0)]  # fmt: skip
        if over:
            name, epsilon = max(over, key=lambda pair: pair[1])
            raise BudgetExceeded(
                f"with {before} earlier release(s) of this document, {name} would have spent "
                f"epsilon {accounting.decimal_up(epsilon)}, above the limit {self._limit:g}",
                next_step="use the release that exists, raise the limit, or lower the policy's "
                "epsilon",
            )

    def _append(self, entry: Mapping[str, Any]) -> None:
        line = (json.dumps(entry, separators=(",", ":")) + "\n").encode("ascii")
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            with os.fdopen(handle, "r+b") as stream:
                whole = stream.read()
                # A line without its end was never synced, so nobody acted on it: cut it.
                end = whole.rfind(b"\n") + 1
                stream.truncate(end)
                stream.seek(end)
                stream.write(line)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as problem:
            raise LedgerError(
                f"the ledger cannot be written ({problem.strerror}); nothing was spent",
                next_step="make room or choose another file",
                place=self._path.name,
            ) from None

    def _of(self, name: str) -> list[dict[str, Any]]:
        """Entries of one document. A torn last line was never acted on, so it is left out."""
        try:
            lines = self._path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return []
        except OSError as problem:
            raise LedgerError(
                f"the ledger cannot be read ({problem.strerror})",
                next_step="nothing is spent while it cannot be read",
                place=self._path.name,
            ) from None
        out = []
        for number, line in enumerate(lines):
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
                if entry["document"] == name:
                    out.append(entry)
            except (ValueError, KeyError, TypeError):
                if number == len(lines) - 1:
                    continue
                raise LedgerError(
                    "the ledger is damaged",
                    next_step="restore it from a backup; without it the sum is not known",
                    place=f"{self._path.name}, line {number + 1}",
                ) from None
        return out

    def _total(self, entries: Sequence[Mapping[str, Any]], delta: float) -> Spent:
        releases = [_release(e, self._path) for e in entries]
        names = dict.fromkeys(n for r in releases for n in r.groups)
        epsilon = {}
        for name in names:
            used = [(r.groups[name], r.draw) for r in releases if name in r.groups]
            epsilon[name] = _sum(used, delta)
        return Spent(len(releases), epsilon, _sum_all(releases, delta), delta)


@dataclass(frozen=True)
class _Release:
    groups: dict[str, accounting.AnyEvent]
    draw: Draw
    combine: str
    scope: str
    total: int | None


def _entry(name: str, policy: Policy, promise: Promise) -> dict[str, Any]:
    return {
        "schema": 1,
        "document": name,
        "combine": policy.combine,
        "scope": policy.scope,
        "draw": asdict(promise.draw),
        "total": promise.total,
        "groups": {
            g.name: statement.entry(g.event) for g in promise.private() if g.event is not None
        },
    }


def _release(entry: Mapping[str, Any], path: Path) -> _Release:
    try:
        groups = {n: statement.event(e) for n, e in entry["groups"].items()}
        return _Release(groups, Draw(**entry["draw"]), entry["combine"], entry["scope"], entry["total"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise LedgerError(
            "the ledger holds an entry that this version cannot read",
            next_step="update the package, or start a new ledger for new documents",
            place=path.name,
        ) from None


def _sum(used: Sequence[tuple[accounting.AnyEvent, Draw]], delta: float) -> float:
    """ε of several releases to one group: losses add at a common order, converted once."""
    used = [(e, d) for e, d in used if not accounting.is_nothing(e)]
    if not used:
        return 0.0
    return min(
        accounting.epsilon_from_rdp(accounting.up(sum(e.rdp(a, d) for e, d in used)), a, delta)
        for a in accounting.known_orders([e for e, _ in used])
    )


def _sum_all(releases: Sequence[_Release], delta: float) -> float:
    events = [e for r in releases for e in r.groups.values() if not accounting.is_nothing(e)]
    if not events:
        return 0.0

    def loss(order: float) -> float:
        return math.fsum(
            accounting.all_groups_rdp(
                list(r.groups.values()), order, r.draw, combine=r.combine, scope=r.scope,
                total=r.total,
            )
            for r in releases
        )

    return min(
        accounting.epsilon_from_rdp(accounting.up(loss(a)), a, delta)
        for a in accounting.known_orders(events)
    )
