"""The commands of `dpredact eval` on a toy model: they run, print what they measured, resume."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dpredact.cli.eval import app
from dpredact.errors import UsageError
from dpredact.evaluation import published, speed
from dpredact.evaluation.methods import Setting, parse_all
from dpredact.lm import toy

NAMES = ("Maren", "Tovin", "Perry", "Osric", "Wanda", "Bramo", "Ilkas")
DP = "dp-fusion:epsilon=16,spending=adaptive"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = tmp_path / "gold.jsonl"
    rows = []
    for number, name in enumerate(NAMES):
        text = f"Said {name} on {number + 1} May 1970 and left."
        day = text.index(" on ") + 4
        spans = [
            {"start": 5, "end": 5 + len(name), "label": "PERSON"},
            {"start": day, "end": day + 10, "label": "DATETIME"},
        ]
        rows.append(json.dumps({"id": f"d{number}", "text": text, "spans": spans}))
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return file


def call(*arguments: object) -> Result:
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    assert done.exit_code == 0, done.output + repr(done.exception)
    return done


def test_attack_prints_every_attacker_and_goes_on(data: Path, tmp_path: Path) -> None:
    """Figures come as JSON and as a page; the second call draws nothing."""
    shared = ("attack", data, "-m", "original", "-m", DP, "--model", "toy", "--limit", 1,
              "--tokens", 12, "--candidates", 3, "-o", tmp_path / "out")  # fmt: skip
    first = json.loads(call(*shared, "--json").stdout)
    original = first["methods"]["original"]
    assert original["attackers"]["informed"]["share"] == 1.0
    assert set(original["groups"]) == {"PERSON", "DATETIME"} and original["chance"] == pytest.approx(1 / 3)
    written = (tmp_path / "out" / "records.jsonl").read_bytes()
    page = call(*shared).stdout
    assert "informed" in page and "chance 0.33" in page
    assert "Maren" not in page, "a page of figures holds no words"
    assert (tmp_path / "out" / "records.jsonl").read_bytes() == written


def test_utility_and_likelihood(data: Path, tmp_path: Path) -> None:
    shared = (data, "-m", DP, "--model", "toy", "--limit", 1, "--tokens", 60, "-o", tmp_path / "o")
    figures = json.loads(call("utility", *shared, "--json").stdout)["methods"][DP]
    assert {"rouge1", "facts", "verbatim", "ppl_tagged", "epsilon"} <= set(figures)
    gaps = json.loads(call("nll", *shared, "--json").stdout)["methods"]
    assert set(gaps) == {"public", "paraphrase", DP}
    assert "tagged" in call("nll", *shared).stdout


def test_curve_writes_table_json_and_picture(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "o"
    call("curve", data, "-m", "dp-fusion", "--epsilon", "8,16", "--model", "toy", "--limit", 1,
         "--tokens", 12, "--no-attack", "-o", out, "--plot", out / "c.svg")  # fmt: skip
    points = json.loads((out / "curve.json").read_text())
    assert [p["method"] for p in points] == ["public", "paraphrase", "dp-fusion:epsilon=8", "dp-fusion:epsilon=16"]
    assert (out / "c.svg").read_text().startswith("<?xml")


def test_audit_holds_a_sound_method(data: Path) -> None:
    found = json.loads(call("audit", data, "-m", DP, "--model", "toy", "--tokens", 6, "--draws", 3,
                            "--groups", "PERSON", "--json").stdout)["audits"]  # fmt: skip
    assert [a["group"] for a in found] == ["PERSON"] and not found[0]["fault"]
    other = "dp-fusion:epsilon=30,neighbours=replace,spending=adaptive"
    call("audit", data, "-m", other, "--model", "toy", "--tokens", 6, "--draws", 2,
         "--groups", "PERSON", "--neighbours", "replace")  # fmt: skip
    refused = CliRunner().invoke(app, ["audit", str(data), "-m", "masked", "--model", "toy"])
    assert isinstance(refused.exception, UsageError)


def test_an_audit_of_nothing_does_not_pass(data: Path) -> None:
    done = CliRunner().invoke(app, ["audit", str(data), "-m", DP, "--model", "toy", "--tokens", "6",
                                    "--draws", "2", "--groups", "ORG"])  # fmt: skip
    assert isinstance(done.exception, UsageError)


def test_speed_shows_where_the_time_goes() -> None:
    found = json.loads(call("speed", "--model", "toy", "--groups", "2", "--documents", "1,2", "--width", 40,
                            "--tokens", 3, "--no-tagging", "--json").stdout)  # fmt: skip
    one, two = found["runs"]
    assert (one["rows"], two["rows"]) == (3, 6)
    for run in (one, two):
        spent = run["decode"] + run["support"] + run["mixing"] + run["draw"]
        assert run["tokens_per_second"] == pytest.approx(run["documents"] * 3 / spent)
        assert 0 < run["own_share"] <= 1
    with pytest.raises(ValueError):
        speed.measure(toy.echo(), "x", groups=9, documents=1, width=8, tokens=2)


def test_plain_generate_is_timed_where_the_model_has_it() -> None:
    model = toy.echo()
    calls = []
    model.generate_plain = lambda rows, width, steps: calls.append((len(rows), width, steps))  # type: ignore[attr-defined]
    timing = speed.measure(model, "some words here ", groups=1, documents=2, width=20, tokens=3)
    assert calls == [(4, 20, 1), (4, 20, 3)]
    assert "ratio" in timing.figures()


def test_every_method_of_the_paper_is_one(data: Path, tmp_path: Path) -> None:
    """The list parses, and a run over one short document gives every column."""
    specs = parse_all([line for _, line in published.PAPER], Setting(delta=1e-3, tokens=60))
    assert len(specs) == len(published.PAPER) == len({n for n, _ in published.PAPER})
    assert set(published.FIGURES) <= {n for n, _ in published.PAPER}
    out = tmp_path / "paper"
    page = call("paper", data, "--model", "toy", "--limit", 1, "--tokens", 12, "--groups", "PERSON",
                "--placeholder", "label", "-o", out).stdout  # fmt: skip
    assert "n = 1 documents" in page and "not a guarantee" in page and "another model" in page
    points = json.loads((out / "paper.json").read_text())
    fusion = next(p for p in points if p["shown"] == "DP-Fusion multi αβ=0.01")
    assert fusion["paper_epsilon"] and fusion["epsilon"] and fusion["published"] == [1.459, 0.26]
    assert (out / "paper.png").exists() and (out / "paper.svg").exists()


@pytest.mark.parametrize("line", ["dp-fuson:epsilon=3", "dp-fusion:epsilon=3,beta=4"])
def test_a_wrong_method_says_what_to_write(data: Path, line: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["nll", str(data), "-m", line, "--model", "toy", "-o", str(tmp_path)])
    assert getattr(done.exception, "exit_code", 0) == 2


def test_the_taggers_own_findings_in_place_of_the_annotated_ones(data: Path, tmp_path: Path) -> None:
    """--own-tags: with the annotation emptied there is still something to attack."""
    rows = [json.loads(line) | {"spans": []} for line in data.read_text(encoding="utf-8").splitlines()]
    bare = tmp_path / "bare.jsonl"
    bare.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    shared = ("-m", "masked", "--model", "toy", "--limit", 1, "--tokens", 12)
    figures = json.loads(call("utility", bare, *shared, "-o", tmp_path / "o", "--json", "--own-tags").stdout)
    assert figures["methods"]["masked"]["rouge1"] < 1, "the date at least is found and masked"


def test_similarity_with_a_local_sentence_model(data: Path, tmp_path: Path) -> None:
    """--embedder FOLDER: any encoder with its tokenizer; here one with random weights."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {w: i for i, w in enumerate(["[UNK]", "Said", "on", "May", "1970", "and", "left"])}
    backend = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    folder = tmp_path / "encoder"
    transformers.PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]").save_pretrained(folder)
    size = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    config = transformers.BertConfig(vocab_size=len(words), max_position_embeddings=64, **size)
    transformers.BertModel(config).save_pretrained(folder)
    found = json.loads(call("utility", data, "-m", "original", "-m", "masked", "--model", "toy", "--limit", 2,
                            "--tokens", 12, "-o", tmp_path / "o", "--embedder", folder, "--json").stdout)  # fmt: skip
    similarity = {name: row["similarity"] for name, row in found["methods"].items()}
    assert similarity["original"] == pytest.approx(1.0, abs=1e-5) and similarity["masked"] < 1 - 1e-4
    wrong = CliRunner().invoke(app, ["utility", str(data), "-m", "original", "--model", "toy", "--limit", "1",
                                     "-o", str(tmp_path / "o"), "--embedder", str(tmp_path)])  # fmt: skip
    assert isinstance(wrong.exception, Exception) and "sentence model" in str(wrong.exception)
