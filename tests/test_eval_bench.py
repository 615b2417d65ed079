"""Releases, likelihoods and attacks on a toy model: numbers of the mixer, and a kill costs one."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

from dpredact.errors import PolicyError, UsageError
from dpredact.evaluation import (
    attack,
    bench,
    corpus,
    game,
    likelihood,
    lockstep,
    methods,
    plots,
    release,
    summary,
    teacher,
    utility,
)
from dpredact.evaluation.scene import ALL, scenes
from dpredact.lm.toy import ToyModel
from dpredact.mixing import Mixer
from dpredact.privacy.mechanisms import Influence
from dpredact.privacy.sampling import UnsafeSeededDraw
from dpredact.tagging.interface import Span

SETTING = methods.Setting(model="toy", tokens=24, top_k=None)
NAMES = ("Maren", "Tovin", "Perry", "Osric", "Wanda", "Bramo", "Ilkas")


def copier() -> ToyModel:
    """Goes on with what followed the last two letters in the row; likes letters anyway."""

    def table(row: tuple[int, ...]) -> list[float]:
        out = [-9.0] * 257
        for letter in b" abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.[]":
            out[letter] = 0.0
        tail = row[-2:]
        for at in range(len(row) - 3, 0, -1):
            if row[at - 1 : at + 1] == tail:
                out[row[at + 1]] += 10.0
                break
        return out

    return ToyModel(table, 257, eos=(256,), name="toy", window=100_000)


def item(number: int, name: str, town: str) -> corpus.Item:
    text = f"Said {name} of {town}."
    spans = (Span(5, 5 + len(name), "PERSON"), Span(len(text) - len(town) - 1, len(text) - 1, "LOCATION"))
    return corpus.Item(f"d{number}", text, spans)


ITEMS = [item(i, n, t) for i, (n, t) in enumerate(zip(NAMES, reversed([n + "ton" for n in NAMES])))]

LINES = (
    "dp-fusion:epsilon=12",
    "dp-fusion:epsilon=20,spending=adaptive,pace=4",
    "dp-fusion:epsilon=20,spending=adaptive,mode=single",
    "dp-fusion:epsilon=20,neighbours=replace,spending=adaptive",
    "dp-fusion:epsilon=12,present=true",
    "pointwise:epsilon=8",
    "invisible-ink:epsilon=8,combine=product,shift=median,top_k=9",
    "cid:epsilon=8,combine=product",
    "cid:epsilon=8,spending=adaptive",
)


@pytest.mark.parametrize("line", LINES)
def test_many_at_once_gives_the_mixers_numbers(line: str) -> None:
    """Every given token has the probability that the mixer itself gives it, place by place."""
    model = copier()
    spec = methods.parse(line, SETTING)
    runs = [
        likelihood.run(teacher.compute(model, s, {}, columns=300), spec)
        for s in scenes(ITEMS[:2], SETTING)
    ]
    fast = lockstep.log_q(runs)
    for run, values in zip(runs, fast, strict=True):
        mixer = Mixer(run.made, run.policy)
        for t in range(len(run.at)):
            columns = torch.isfinite(run.logits[0, t]).nonzero()[:, 0]
            mixed = mixer.step(run.logits[:, t][:, columns].double(), run.views)
            at = (columns == run.at[t]).nonzero()[0, 0]
            # A purse that is all but empty magnifies the last digits of what it paid before.
            near = 5e-3 if "adaptive" in line else 1e-6
            assert float(values[t]) == pytest.approx(float(mixed[at]), abs=near)


def test_an_empty_purse_and_equal_rows_are_no_zero_by_zero() -> None:
    """cid with nothing left on two equal rows is the public row, not NaN."""
    row = torch.log_softmax(torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64), -1)
    assert torch.allclose(Influence(0.0, 1.0, 1.0).mix(row, row.clone()), row)


def test_the_split_adds_up_and_protection_costs() -> None:
    """Tagged and untagged tokens are all tokens; clear ≤ protected ≤ public on tagged ones."""
    model, at = copier(), scenes(ITEMS[:1], SETTING)[0]
    forced = teacher.compute(model, at, {}, columns=300)
    names = ["public", "paraphrase", "mean-views", "dp-fusion:epsilon=20,spending=adaptive"]
    clear = {n: likelihood.score(forced, methods.parse(n, SETTING)) for n in names}
    tokens = len(ITEMS[0].text.encode())
    for one in clear.values():
        assert one.tagged_tokens + one.untagged_tokens == tokens
        assert one.tagged_tokens == len(" Maren Ilkaston")
    tagged = [clear[n].mean("tagged") for n in ("paraphrase", names[3], "public")]
    assert tagged == sorted(tagged) and tagged[0] < tagged[2]
    assert math.isnan(likelihood.ZERO.mean())


def test_baselines_are_scored_over_the_whole_vocabulary() -> None:
    """dp-decoding's floor is (1−λ)/V and not a share of the kept columns."""
    model, at = copier(), scenes(ITEMS[:1], SETTING)[0]
    spec = methods.parse("dp-decoding:weight=0.5", SETTING)
    forced = teacher.compute(model, at, teacher.baselines_of([spec]), columns=40)
    assert float(forced.baselines[spec.name].min()) >= math.log(0.5 / 257)
    assert likelihood.score(forced, spec).mean() > 0


def test_rows_are_read_from_disk_unless_the_document_changed(tmp_path: Path) -> None:
    model = copier()
    calls: list[int] = []
    forward = model.forced
    model.forced = lambda rows, ids, width: (calls.append(1), forward(rows, ids, width))[1]  # type: ignore[method-assign]
    store = teacher.Store(tmp_path)
    first, other = scenes(ITEMS[:2], SETTING)
    made = store.get(model, first, 0, {})
    seen = len(calls)
    again = store.get(model, first, 0, {})
    assert len(calls) == seen and torch.equal(made.logits, again.logits)
    store.get(model, other, 0, {})
    assert len(calls) > seen
    (tmp_path / "rows-00000.pt").write_bytes(b"torn")
    store.get(model, other, 0, {})  # no error


def rows_of(methods_: list[str], folder: Path, **plan: object) -> list[dict[str, object]]:
    specs = methods.parse_all(methods_, SETTING)
    board = bench.Bench(copier(), SETTING, ITEMS[:2], ITEMS, folder,
                        bench.Plan(size=4, **plan), UnsafeSeededDraw(3))  # type: ignore[arg-type]  # fmt: skip
    return list(board.records(specs))


def test_attackers_find_what_is_there_and_nothing_where_nothing_is(tmp_path: Path) -> None:
    """The original falls to everyone who reads it, the masked text to no informed attacker."""
    rows = rows_of(["original", "masked", "public", "paraphrase"], tmp_path, others="hidden")
    table = summary.attack_table(rows)
    original = table["original"]["attackers"]["informed"]
    assert original["hits"] == original["rounds"] == 4
    assert table["original"]["attackers"]["loss"]["hits"] == 4
    for name in ("masked", "public"):
        none = table[name]["attackers"]["informed"]
        assert none["hits"] == 0 and none["tied"] == none["rounds"] == 4
        assert none["guessing"] == pytest.approx(0.25) == pytest.approx(table[name]["chance"])


@pytest.mark.parametrize("others", ["shown", "hidden"])
def test_the_informed_attacker_knows_the_method(tmp_path: Path, others: str) -> None:
    """A generous budget falls to her; ε = 0 ties every candidate."""
    rows = rows_of(["dp-fusion:epsilon=400,order=2,mode=single", "dp-fusion:epsilon=0"], tmp_path,
                   others=others)  # fmt: skip
    table = summary.attack_table(rows)
    generous = table["dp-fusion:epsilon=400,order=2,mode=single"]["attackers"]["informed"]
    assert generous["hits"] >= 2  # this toy writes the name, and then seldom the town
    nothing = table["dp-fusion:epsilon=0"]["attackers"]["informed"]
    assert nothing["hits"] == 0 and nothing["tied"] == nothing["rounds"]


def test_the_informed_score_is_the_likelihood_of_the_draw() -> None:
    """What she computes for the truth is what the loop drew with, path for path."""
    model, at = copier(), scenes(ITEMS[:1], SETTING)[0]
    spec = methods.parse("dp-fusion:epsilon=30,spending=adaptive", SETTING)
    seen: list[float] = []

    class Watch:
        safe = False
        inner = UnsafeSeededDraw(11)

        def __call__(self, log_p: torch.Tensor) -> int:
            at = self.inner(log_p)
            seen.append(float(log_p[at]))
            return at

    drawn = release.release(model, at, spec, Watch(), None)
    dealt = game.deal(at, "PERSON", game.pool(ITEMS, game.group_of_entities(methods.GROUPS))["PERSON"], 3, 0)
    assert dealt is not None
    frame_scores: list[list[float]] = []
    judged = attack.judge
    try:
        attack.judge = lambda scores, truth: (frame_scores.append(list(scores)), judged(scores, truth))[1]  # type: ignore[assignment]
        attack.play(model, at, spec, drawn, [dealt])
    finally:
        attack.judge = judged
    informed = frame_scores[-1][dealt.truth]
    assert informed == pytest.approx(sum(seen[: len(drawn.ids)]), abs=1e-6)


def test_a_run_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    """Known records are read, a torn line is drawn again, another seed is another run."""
    first = rows_of(["masked", "dp-fusion:epsilon=12"], tmp_path)
    file = tmp_path / "records.jsonl"
    whole = file.read_bytes()
    assert file.stat().st_mode & 0o077 == 0
    file.write_bytes(whole[:-40])
    again = rows_of(["masked", "dp-fusion:epsilon=12"], tmp_path)
    assert again[:3] == first[:3] and again[3]["document"] == 1
    lines = [line for line in file.read_bytes().splitlines() if line]
    assert len(lines) == 5, "three whole, one torn, one new"
    assert rows_of(["masked", "dp-fusion:epsilon=12"], tmp_path) == again
    assert len(rows_of(["masked"], tmp_path, seed=1)) == 2
    assert len(file.read_bytes().splitlines()) == 7


def test_certified_numbers_are_the_promises() -> None:
    spec = methods.parse("dp-fusion:epsilon=9", SETTING)
    worst, whole = likelihood.certified(spec, ["PERSON", "LOC"], 24, 257)
    assert 8.9 < worst <= 9 <= whole
    assert likelihood.certified(methods.parse("masked", SETTING), ["PERSON"], 24, 257) == (0.0, 0.0)
    assert math.isinf(likelihood.certified(methods.parse("paraphrase", SETTING), [], 24, 257)[0])
    pure = likelihood.certified(methods.parse("dp-decoding:weight=0.9", SETTING), [], 24, 257)[0]
    assert pure <= 24 * math.log(1 + 257 * 0.9 / 0.1) * 1.001 and pure > 100


def test_the_papers_formula_is_the_papers() -> None:
    """α = 2, m = 2, caps 0.1: 0.105 a token, the number that THEORY §2 contradicts."""
    spec = methods.parse("dp-fusion:beta=0.05,order=2", SETTING)
    step = bench.paper_epsilon(spec, ["PERSON", "LOC"], 1) + math.log(SETTING.delta)
    assert step == pytest.approx(0.105, abs=5e-4)
    assert math.isnan(bench.paper_epsilon(methods.parse("masked", SETTING), [], 1))


def test_methods_are_read_from_one_line() -> None:
    spec = methods.parse("dp-fusion:epsilon=8,mode=single,pace=3,spending=adaptive", SETTING)
    assert spec.policy is not None and spec.policy.mode == "single"
    assert spec.policy.groups["PERSON"].pace == 3
    for wrong in ("dp-fuson:epsilon=8", "dp-fusion:epsilom=8", "dp-fusion:epsilon", "dp-decoding",
                  "masked:epsilon=3"):  # fmt: skip
        with pytest.raises(UsageError):
            methods.parse(wrong, SETTING)
    with pytest.raises(PolicyError):
        methods.parse("dp-fusion:epsilon=8,beta=2", SETTING)
    with pytest.raises(UsageError):
        methods.parse_all(["masked", "masked"], SETTING)


def test_a_policy_file_is_a_method(tmp_path: Path) -> None:
    """Its own groups hold: a redacted group is shown by no row."""
    file = tmp_path / "mine.yaml"
    file.write_text(
        "version: 1\nmodel: toy\nmax_new_tokens: 12\ngroups:\n"
        "  PERSON: {entities: [PERSON], method: dp-fusion, epsilon: 9}\n"
        "  other: {entities: [ORG], method: redact}\n"
    )
    (row, _) = rows_of([str(file)], tmp_path / "out")
    assert row["method"] == "mine" and 8 < row["epsilon"] <= 9  # type: ignore[operator]
    spec = methods.parse(str(file), SETTING)
    at = bench.scene(ITEMS[0], bench.structure(spec, SETTING))
    assert "Ilkaston" not in at.in_one_view().text(ALL) and "Maren" in at.in_one_view().text(ALL)


def test_corpora_are_read_with_their_labels(tmp_path: Path) -> None:
    file = tmp_path / "gold.jsonl"
    text = "Said Maren of Harwick on 3 March, and more words."
    spans = [
        {"start": 5, "end": 10, "label": "PER"}, {"start": 14, "end": 21, "label": "GPE"},
        {"start": 25, "end": 32, "label": "DATETIME", "identifier_type": "QUASI"},
        {"start": 0, "end": 4, "label": "ORG", "identifier_type": "NO_MASK"},
    ]  # fmt: skip
    file.write_text(json.dumps({"text": text, "spans": spans}) + "\n")
    (whole,) = corpus.read(file)
    assert [s.entity for s in whole.spans] == ["PERSON", "LOCATION", "DATE"]
    (short,) = corpus.read(file, cut=30)
    assert short.text == "Said Maren of Harwick on" and len(short.spans) == 2
    file.write_text('{"text": "abc", "spans": [{"start": 2, "end": 9, "label": "X"}]}\n')
    with pytest.raises(UsageError) as fault:
        corpus.read(file)
    assert fault.value.place == "gold.jsonl:1"


def test_utility_counts_by_hand() -> None:
    at = scenes(ITEMS[:1], SETTING)[0]
    figures = utility.measure(at, ITEMS[0].text)
    assert figures["rouge1"] == figures["rougeL"] == figures["verbatim"] == figures["length"] == 1
    masked = utility.measure(at, "Said somebody of somewhere.")
    assert masked["verbatim"] == 0 and 0 < masked["rouge1"] < 1
    assert utility.kept(["3", "3", "4"], ["3", "4"]) == pytest.approx(2 / 3)
    assert utility.reappearing(["Maren"], "Marenton, maren") == 1.0
    assert utility.reappearing(["Maren"], "Marenton") == 0.0
    assert utility.reading_ease("The cat sat.") > utility.reading_ease(
        "Constitutional considerations necessitate reconsideration."
    )


def test_a_curve_is_drawn_and_summed_up(tmp_path: Path) -> None:
    rows = rows_of(["public", "paraphrase", "dp-fusion:epsilon=8", "dp-fusion:epsilon=16"], tmp_path)
    points = summary.curve(rows)
    assert [p["method"] for p in points][2:] == ["dp-fusion:epsilon=8", "dp-fusion:epsilon=16"]
    assert points[0]["gap_all"] == pytest.approx(0) and points[1]["gap_all"] == pytest.approx(1)
    assert points[2]["ppl_tagged"] >= points[3]["ppl_tagged"]
    for ending in ("png", "svg"):
        target = tmp_path / f"curve.{ending}"
        plots.curve(points, target)
        assert target.stat().st_size > 5000
    json.dumps(summary.jsonable(points), allow_nan=False)
    assert plots.family("dp-fusion:epsilon=8,mode=single") == "dp-fusion:mode=single"


def test_spans_scope_scores_the_words_that_stood_there(tmp_path: Path) -> None:
    """Tagged tokens alone; more budget is never worse than the public view, and its ends are its own."""
    rows = rows_of(["dp-fusion:epsilon=0,scope=spans", "dp-fusion:epsilon=60,scope=spans"], tmp_path)
    table = summary.utility_table(rows)
    none, much = table["dp-fusion:epsilon=0,scope=spans"], table["dp-fusion:epsilon=60,scope=spans"]
    assert none["gap_tagged"] == pytest.approx(0, abs=1e-9) and 0.2 < much["gap_tagged"] <= 1
    assert "ppl_untagged" not in much
    (first, *_) = rows
    assert first["nll"][1] == 6 + 8, "a blank and five letters; the town is cut at max_span_tokens"  # type: ignore[index]
