"""The audit catches a mechanism that leaks, and leaves a sound one alone."""

from __future__ import annotations

import math
import random

import pytest
import torch

from dpredact.evaluation import audit
from dpredact.lm.toy import ToyModel
from dpredact.mixing import Mixer
from dpredact.policy import Policy
from dpredact.privacy.sampling import UnsafeSeededDraw
from dpredact.promise import promise

VOCABULARY, T = 6, 6
PUBLIC, PRIVATE, OTHER, SECOND = (0,), (1,), (2,), (3,)


def model() -> ToyModel:
    """Row 1 is sure of token 4, row 2 of token 5, the public row likes neither."""

    def table(row: tuple[int, ...]) -> list[float]:
        out = [1.0, 1.0, 1.0, 1.0, -6.0, -6.0]
        if row[0] in (1, 2):
            out[3 + row[0]] = 9.0
        return out

    return ToyModel(table, VOCABULARY, eos=())


def policy(**group: object) -> Policy:
    settings = {"method": "dp-fusion", **group}
    return Policy.model_validate({
        "version": 1, "max_new_tokens": T, "decoding": {"temperature": 1.0, "top_k": None},
        "groups": {
            "A": {"entities": ["PERSON"], **settings},
            "other": {"entities": ["ORG"], "method": "redact"},
        },
    })  # fmt: skip


class Careless(Mixer):
    """A planted fault: the private row as it is, whatever the cap says."""

    def end(self, half, q, up, down):  # type: ignore[no-untyped-def]
        return torch.log_softmax(half.logits[1], -1)


class Double(Mixer):
    """A planted fault: every cap is twice what was promised, and is not charged so."""

    def begin(self, logits: torch.Tensor, views):  # type: ignore[no-untyped-def]
        half = super().begin(logits, views)
        half.caps = [tuple((a, 2 * c) for a, c in pair) for pair in half.caps]  # type: ignore[misc]
        return half


def run(rules: Policy, make_mixer=Mixer, draws: int = 80, other=None) -> audit.Audit:  # type: ignore[no-untyped-def]
    made = promise(rules, {"A": T}, VOCABULARY)
    return audit.audit(
        model(), rules, made, {None: PUBLIC, "A": PRIVATE}, "A", other,
        draws=draws, tokens=T, draw=UnsafeSeededDraw(5), make_mixer=make_mixer,
    )  # fmt: skip


SOUND = (
    {"epsilon": 2.0, "order": "auto"},
    {"epsilon": 2.0, "spending": "adaptive"},
    {"method": "pointwise", "epsilon": 2.0},
    {"method": "invisible-ink", "clip": 0.5},
)


@pytest.mark.parametrize("group", SOUND)
def test_a_sound_mechanism_is_not_accused(group: dict[str, object]) -> None:
    """Neither bound passes the certified ε, and no path passes the budget."""
    seen = run(policy(**group), draws=40)
    assert not seen.fault
    assert max(seen.from_losses, seen.from_frequencies) <= seen.certified
    assert 0 < seen.divergence <= seen.budget * (1 + 1e-9)


def test_the_private_row_itself_is_caught() -> None:
    """A mechanism without protection passes the certified ε by far, in every way."""
    seen = run(policy(epsilon=0.5), Careless)
    assert seen.fault
    assert seen.from_losses > seen.certified and seen.from_frequencies > seen.certified
    assert seen.divergence > seen.budget


def test_a_doubled_cap_is_caught_by_exact_divergences() -> None:
    """Too small a fault for counting, and no way past the exact losses of the steps."""
    assert run(policy(epsilon=2.0), Double, draws=10).divergence > run(policy(epsilon=2.0), draws=10).budget
    assert run(policy(epsilon=2.0), Double, draws=10).fault


def test_replaced_words_are_held_against_a_promise_for_replacing() -> None:
    """Under `replace` the neighbour has other words, and the promise covers it."""
    rules = policy(epsilon=6.0, order=2).model_copy(update={"neighbours": "replace", "delta": 1e-2})
    seen = run(rules, other=OTHER)
    assert not seen.fault and seen.divergence > 0


def test_the_bounds_know_a_mechanism_whose_answer_is_known() -> None:
    """Randomised response with ε = 3: both bounds end below 3, and above 1.5 with many draws."""
    rng = random.Random(3)
    keep = math.exp(3) / (1 + math.exp(3))
    here = [3.0 if rng.random() < keep else -3.0 for _ in range(4000)]
    there = [-3.0 if rng.random() < keep else 3.0 for _ in range(4000)]
    assert 2.9 < audit.bound_from_losses(here, 1e-5) <= 3.0
    assert 1.5 < audit.bound_from_frequencies(here, there, 1e-5) <= 3.0


def test_few_draws_say_little() -> None:
    """Without draws nothing is claimed; with δ above every share nothing either."""
    assert audit.bound_from_losses([], 1e-5) == 0.0
    assert audit.bound_from_losses([50.0] * 8, 0.9) == 0.0
    assert audit.bound_from_frequencies([], [], 1e-5) == 0.0


def test_losses_do_not_print() -> None:
    assert " losses=" not in repr(run(policy(epsilon=2.0), draws=4))
