"""The ledger across runs: sums are right, limits hold, a crash counts as spent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpredact import lm, pipeline
from dpredact.errors import BudgetExceeded
from dpredact.jobs.ledger import Ledger, LedgerError
from dpredact.policy import Policy
from dpredact.privacy import accounting
from dpredact.privacy.accounting import Draw, OrderCap
from dpredact.promise import promise
from dpredact.tagging.interface import Span, Tagging

KEY = b"k" * 32
DATA = b"Ida Brandt wrote on Monday."
POLICY = Policy.model_validate(
    {
        "version": 1,
        "model": "toy",
        "max_new_tokens": 30,
        "groups": {
            "PERSON": {"entities": ["PERSON"], "method": "dp-fusion", "beta": 0.01, "order": 2},
            "DATE": {"entities": ["DATE"], "method": "cid", "epsilon": 1.0},
            "other": {"entities": ["ORG"], "method": "redact"},
        },
    }
)
PROMISE = promise(POLICY, {"PERSON": 30, "DATE": 30}, 257)


def test_two_releases_cost_the_sum_at_a_common_order(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl", KEY)
    ledger.spend(DATA, POLICY, PROMISE)
    once = ledger.spent(DATA, 1e-5)
    assert once.epsilon["PERSON"] == pytest.approx(PROMISE.groups[0].epsilon)
    ledger.spend(DATA, POLICY, PROMISE)
    twice = ledger.spent(DATA, 1e-5)
    doubled = OrderCap(2.0, 0.02, 0.5, 60)
    assert twice.epsilon["PERSON"] == pytest.approx(
        accounting.epsilon(doubled, 1e-5, Draw(257)), rel=1e-9
    )
    assert once.epsilon_all < twice.epsilon_all < 2 * once.epsilon_all
    assert twice.releases == 2
    assert ledger.spent(b"another document", 1e-5).releases == 0


def test_a_release_past_the_limit_is_refused_and_not_written(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    limit = PROMISE.epsilon_all * 1.02
    Ledger(path, KEY, limit).spend(DATA, POLICY, PROMISE)
    before = path.read_bytes()
    with pytest.raises(BudgetExceeded, match="above the limit"):
        Ledger(path, KEY, limit).spend(DATA, POLICY, PROMISE)
    assert path.read_bytes() == before
    assert BudgetExceeded.exit_code == 4


def test_a_run_that_dies_after_spending_has_spent(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl", KEY, PROMISE.epsilon_all * 1.02)
    model = lm.load("toy")

    def breaks(tokens: int) -> None:
        raise KeyboardInterrupt

    tagging = Tagging((Span(0, 10, "PERSON"), Span(20, 26, "DATE")))

    def run(progress=breaks) -> pipeline.Release:
        return pipeline.rewrite(
            DATA.decode(), POLICY, model, tagging=tagging, progress=progress,
            spend=lambda policy, promised: ledger.spend(DATA, policy, promised),
        )  # fmt: skip

    with pytest.raises(KeyboardInterrupt):
        run()
    assert ledger.spent(DATA, 1e-5).releases == 1
    with pytest.raises(BudgetExceeded):
        run(lambda tokens: None)


def test_the_ledger_is_private_and_holds_no_plain_hash(tmp_path: Path) -> None:
    import hashlib

    path = tmp_path / "ledger.jsonl"
    Ledger(path, KEY).spend(DATA, POLICY, PROMISE)
    text = path.read_text()
    assert hashlib.sha256(DATA).hexdigest() not in text
    assert "Ida" not in text
    assert path.stat().st_mode & 0o777 == 0o600
    assert Ledger(path, b"x" * 32).spent(DATA, 1e-5).releases == 0


def test_a_torn_last_line_is_skipped_and_a_damaged_one_stops_everything(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(path, KEY)
    ledger.spend(DATA, POLICY, PROMISE)
    whole = path.read_text()
    path.write_text(whole + '{"schema":1,"docu')
    assert ledger.spent(DATA, 1e-5).releases == 1
    ledger.spend(DATA, POLICY, PROMISE)
    assert ledger.spent(DATA, 1e-5).releases == 2
    path.write_text("rubbish\n" + whole)
    with pytest.raises(LedgerError, match="damaged"):
        ledger.spent(DATA, 1e-5)
    entry = json.loads(whole)
    entry["groups"]["PERSON"]["kind"] = "newer"
    path.write_text(json.dumps(entry) + "\n")
    with pytest.raises(LedgerError, match="cannot read"):
        ledger.spent(DATA, 1e-5)
