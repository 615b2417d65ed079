"""Many texts side by side: everyone finishes, faults stay where they are, nobody overspends."""

from __future__ import annotations

import json

import pytest
import torch

from dpredact import documents, lm, pipeline
from dpredact.batching import Desk
from dpredact.certificate import verify
from dpredact.decoding import Lane, Support
from dpredact.errors import DpredactError, NotCovered
from dpredact.mixing import Mixer, mix_together
from dpredact.policy import Method, Policy
from dpredact.privacy.accounting import Filter
from dpredact.privacy.sampling import SystemDraw
from dpredact.promise import promise
from dpredact.tagging.interface import Span, Tagging

MARK = "Zyxomarker"


def policy(**person: object) -> Policy:
    return Policy.model_validate(
        {
            "version": 1, "model": "toy", "max_new_tokens": 25, "delta": 0.01,
            "groups": {
                "PERSON": {"entities": ["PERSON"], "method": "dp-fusion", **person},
                "other": {"entities": ["ORG"], "method": "redact"},
            },
        }
    )  # fmt: skip


FIXED = policy(beta=0.05, order=2)
PACED = policy(epsilon=6, order=2, spending="adaptive", pace=50)


def requests(count: int, broken: int | None = None) -> list[pipeline.Request]:
    def opener(number: int):
        def open_it():
            if number == broken:
                raise NotCovered("this one cannot be read")
            text = f"{MARK} wrote letter number {number} to the office."
            tagging = Tagging((Span(0, len(MARK), "PERSON"),))
            return documents.read(text.encode(), f"{number}.txt"), tagging

        return open_it

    return [pipeline.Request(n, opener(n)) for n in range(count)]


def run(found: list[pipeline.Request], model: object | None = None, together: int = 3) -> dict:
    results = pipeline.rewrite_many(
        found, FIXED, model or lm.load("toy"), tagger=None, together=together  # type: ignore[arg-type]
    )
    return {request.label: outcome for request, outcome in results}


def test_every_document_comes_back_with_a_certificate_that_holds() -> None:
    outcomes = run(requests(8))
    assert sorted(outcomes) == list(range(8))
    for release in outcomes.values():
        assert verify(release.data, json.loads(json.dumps(release.certificate))).ok


def test_no_more_documents_begin_than_may_be_open() -> None:
    begun, ended, most = [], [], 0
    found = requests(7)
    found = [
        pipeline.Request(r.label, r.open, lambda p, promised, n=r.label: begun.append(n)) for r in found
    ]
    for request, _ in pipeline.rewrite_many(
        found, FIXED, lm.load("toy"), tagger=None, together=2  # type: ignore[arg-type]
    ):
        ended.append(request.label)
        most = max(most, len(begun) - len(ended) + 1)
    assert len(ended) == 7 and most <= 2 + 1  # one that ended may wait to be told


def test_a_document_that_cannot_be_read_costs_nobody_else() -> None:
    outcomes = run(requests(5, broken=2))
    assert isinstance(outcomes[2], NotCovered)
    assert all(isinstance(outcomes[n], pipeline.Release) for n in (0, 1, 3, 4))


def test_a_model_that_fails_in_the_middle_ends_what_was_open_and_says_no_word() -> None:
    model = lm.load("toy")
    real, calls = model.table, [0]

    def breaks(row: tuple[int, ...]) -> object:
        calls[0] += 1
        if calls[0] == 40:
            raise RuntimeError(f"row of {MARK}")
        return real(row)

    model.table = breaks
    outcomes = run(requests(6), model)
    failed = [o for o in outcomes.values() if isinstance(o, DpredactError)]
    assert 1 <= len(failed) <= 3 and len(outcomes) == 6
    for error in failed:
        assert MARK not in f"{error!r} {error} {error.__cause__!r} {error.__context__!r}"


def test_a_fault_of_the_ledger_stops_everything() -> None:
    class Full(DpredactError):
        fatal = True

    def full(rules: Policy, promised: object) -> None:
        raise Full("no room")

    found = [pipeline.Request(r.label, r.open, full) for r in requests(2)]
    with pytest.raises(Full):
        list(pipeline.rewrite_many(found, FIXED, lm.load("toy"), tagger=None))  # type: ignore[arg-type]


def rows(seed: int, size: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn((2, size), generator=generator, dtype=torch.float64) * 3


def test_mixing_together_gives_what_mixing_alone_gives() -> None:
    """Other supports beside it may move the last digits, nothing more."""
    made = promise(FIXED, {"PERSON": 50}, 100)
    alone = [Mixer(made, FIXED).step(rows(n, 5 + n), ("PERSON",)) for n in range(6)]
    mixer = Mixer(made, FIXED)
    both = mix_together([(mixer, rows(n, 5 + n), ("PERSON",)) for n in range(6)])
    for a, b in zip(alone, both, strict=True):
        assert a.shape == b.shape
        assert torch.allclose(a, b, rtol=0, atol=1e-9)


def test_texts_that_share_a_paced_account_take_turns_and_keep_its_budget() -> None:
    made = promise(PACED, {"PERSON": 40}, 100)
    event = made.private()[0].event
    assert isinstance(event, Filter)
    mixer = Mixer(made, PACED)
    mixer.watch()
    for turn in range(5):
        mix_together([(mixer, rows(10 * turn + n, 8), ("PERSON",)) for n in range(8)])
    assert mixer.record is not None
    assert sum(mixer.record["PERSON"]) <= event.budget * (1 + 1e-12)
    assert max(mixer.record["PERSON"][-8:]) < 1e-3, "the budget should have run out by now"


def test_a_lane_that_is_larger_than_the_room_is_still_written() -> None:
    made = promise(FIXED, {"PERSON": 30}, 257)
    lanes = [
        Lane([[1] * 5, [2] * 5], ("PERSON",), 5, 10, Mixer(made, FIXED), Support(20, 0.0))
        for _ in range(3)
    ]
    desk: Desk[int] = Desk(lm.load("toy"), SystemDraw(), room=1)
    done = list(desk.serve([(n, [lane]) for n, lane in enumerate(lanes)]))
    assert done == [0, 1, 2]
    assert all(not lane.open for lane in lanes)


@pytest.mark.parametrize(
    "method, neighbours", [("dp-fusion", "remove"), ("dp-fusion", "replace"), ("cid", "remove")]
)
def test_the_owner_is_told_what_every_kind_of_paced_account_has_left(
    method: str, neighbours: str
) -> None:
    rules = PACED.model_copy(
        update={
            "neighbours": neighbours,
            "groups": {
                **PACED.groups,
                "PERSON": PACED.groups["PERSON"].model_copy(update={"method": Method(method)}),
            },
        }
    )
    mixer = Mixer(promise(rules, {"PERSON": 40}, 100), rules)
    before = mixer.remaining()["PERSON"]
    mixer.step(rows(1, 8), ("PERSON",))
    assert 0 <= mixer.remaining()["PERSON"] < before
