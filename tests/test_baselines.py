"""Baselines through the pipeline: marked, counted, and exactly as private as they say."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
import typer
from typer.testing import CliRunner

from dpredact import lm, pipeline
from dpredact.certificate import verify
from dpredact.cli.verify import command as verify_command
from dpredact.decoding import Lane, Support
from dpredact.mixing import BaselineMixer
from dpredact.policy import Policy
from dpredact.privacy.accounting import Draw
from dpredact.promise import WHOLE, promise
from dpredact.tagging.interface import Span, Tagging
from tests.exact import Branch, renyi_exact, shipped

GROUPS = {
    "PERSON": {"entities": ["PERSON"], "method": "dp-fusion", "beta": 0.01, "order": 2},
    "other": {"entities": ["ORG"], "method": "redact"},
}


def policy(**baseline: object) -> Policy:
    return Policy.model_validate(
        {
            "version": 1, "model": "toy", "max_new_tokens": 12, "groups": GROUPS,
            "decoding": {"temperature": 0.8}, "baseline": baseline,
        }
    )  # fmt: skip


RULES = [policy(method="dp-decoding", mix_weight=0.6), policy(method="dp-prompt", window=2.0)]


@pytest.mark.parametrize("rules", RULES, ids=lambda r: r.baseline.method)
def test_a_baseline_release_is_certified_and_marked_as_a_comparison(rules: Policy, tmp_path: Path) -> None:
    text = "Ida Brandt wrote to the office about the leak."
    release = pipeline.rewrite(
        text, rules, lm.load("toy"), tagging=Tagging((Span(0, 10, "PERSON"),))
    )
    certificate = json.loads(json.dumps(release.certificate))
    verdict = verify(release.data, certificate)
    assert verdict.ok, verdict.problems
    assert certificate["predicate"]["assumptions"][0].startswith("COMPARISON ONLY")
    (group,) = certificate["predicate"]["groups"]
    assert group["name"] == WHOLE and float(group["epsilon"]) > 0
    file = tmp_path / "out.txt"
    file.write_bytes(release.data)
    (tmp_path / "out.txt.cert.json").write_text(json.dumps(certificate), encoding="utf-8")
    app = typer.Typer()
    app.command()(verify_command)
    assert "for comparison only" in CliRunner().invoke(app, [str(file)]).stdout
    assert json.loads(CliRunner().invoke(app, [str(file), "--json"]).stdout)["comparison_only"] is True
    forged = json.loads(json.dumps(certificate))
    forged["predicate"]["groups"][0]["epsilon"] = "1"
    assert not verify(release.data, forged).ok


@pytest.mark.parametrize("rules", RULES, ids=lambda r: r.baseline.method)
def test_no_two_documents_are_further_apart_than_certified(rules: Policy) -> None:
    tokens, steps = 3, 2
    promised = promise(rules, {WHOLE: steps}, tokens, steps)

    def law(sharp: int) -> dict[tuple[int, ...], float]:
        out: dict[tuple[int, ...], float] = {}

        def walk(path: tuple[int, ...]) -> None:
            branch = Branch(path, shipped)
            lane = Lane([[0]], (), 1, steps, BaselineMixer(promised, rules), Support(None, 0.0))
            logits = torch.zeros((1, tokens), dtype=torch.float64)
            logits[0, sharp] = 40.0
            while lane.open and branch.steps < len(path):
                lane.advance(logits, frozenset(), branch)
            if lane.open:
                for choice in range(tokens):
                    walk((*path, choice))
            else:
                out[path] = branch.log_p

        walk(())
        return out

    event = promised.groups[0].event
    for a in (1.5, 2.0, 8.0):
        worst = renyi_exact(law(0), law(1), a)
        assert worst <= event.rdp(a, Draw(tokens)) * (1 + 1e-9)
    assert math.isfinite(promised.epsilon_all)


def test_a_baseline_that_would_follow_the_text_is_refused() -> None:
    with pytest.raises(ValueError, match="max_new_tokens"):
        Policy.model_validate(
            {"version": 1, "groups": GROUPS, "baseline": {"method": "dp-prompt", "window": 1}}
        )
    with pytest.raises(ValueError, match="needs window"):
        policy(method="dp-prompt")
