"""The trained tagger: its arithmetic, its joining of words, and what it finds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpredact import tagging
from dpredact.errors import ModelError
from dpredact.lm import catalog
from dpredact.policy import TaggerSettings, entities
from dpredact.tagging import onnx_ner, trained

needs_model = pytest.mark.skipif(
    not catalog.present("rampart"), reason="run `dpredact models fetch rampart`"
)
JUDGMENT = (
    "The case originated in an application (no. 81234/05) against the Republic of Ruritania "
    "lodged with the Court by a Ruritanian national, Mr Rudolf Elphberg, on 3 March 2005.\n\n"
    "The applicant was born in 1961 and lives in Strelsau. On 14 June 1999 the Strelsau "
    "Regional Court convicted him of fraud and sentenced him to three years’ imprisonment.\n"
)
WIDTH = 24  # of the tests' own head: 12 attention heads of 2


def small(layers: int = 2, classes: int = 3, seed: int = 7) -> dict[str, np.ndarray]:
    """Random weights of a head as the training script writes them; seed 7, numpy's PCG64."""
    draw = np.random.default_rng(seed)
    out: dict[str, np.ndarray] = {
        f"shape.{i}": draw.normal(size=(n, WIDTH)).astype(np.float16)
        for i, n in enumerate(trained.SHAPES)
    }
    sizes = {"query": (24, 24), "key": (24, 24), "value": (24, 24), "output": (24, 24),
             "up": (48, 24), "down": (24, 48)}  # fmt: skip
    for layer in range(layers):
        for part, (rows, columns) in sizes.items():
            name = f"layer.{layer}.{part}"
            out[f"{name}.weight"] = draw.integers(-127, 128, (rows, columns)).astype(np.int8)
            out[f"{name}.weight.scale"] = draw.uniform(0.001, 0.004, rows).astype(np.float32)
            out[f"{name}.bias"] = draw.normal(size=rows).astype(np.float32)
        for norm in ("norm1", "norm2"):
            out[f"layer.{layer}.{norm}.weight"] = draw.normal(1, 0.1, WIDTH).astype(np.float32)
            out[f"layer.{layer}.{norm}.bias"] = draw.normal(size=WIDTH).astype(np.float32)
    out["out.weight"] = draw.normal(size=(classes, WIDTH)).astype(np.float32)
    out["out.bias"] = draw.normal(size=classes).astype(np.float32)
    return out


def twin(weights: dict[str, np.ndarray], hidden: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """The same head by torch, one attention head at a time."""
    torch = pytest.importorskip("torch")
    F = torch.nn.functional

    def get(name: str):
        value = torch.tensor(weights[name].astype(np.float32))
        scale = weights.get(f"{name}.scale")
        return value if scale is None else value * torch.tensor(scale)[:, None]

    def linear(x, name: str):
        return F.linear(x, get(f"{name}.weight"), get(f"{name}.bias"))

    x = torch.tensor(hidden)
    for i in range(4):
        x = x + get(f"shape.{i}")[torch.tensor(marks[:, i])]
    for layer in range(sum(n.endswith(".query.bias") for n in weights)):
        n = f"layer.{layer}"
        q, k, v = (linear(x, f"{n}.{p}") for p in ("query", "key", "value"))
        seen = []
        for low in range(0, WIDTH, 2):
            a = torch.softmax(q[:, low : low + 2] @ k[:, low : low + 2].T / 2**0.5, -1)
            seen.append(a @ v[:, low : low + 2])
        x = F.layer_norm(x + linear(torch.cat(seen, 1), f"{n}.output"), (WIDTH,),
                         get(f"{n}.norm1.weight"), get(f"{n}.norm1.bias"), 1e-12)  # fmt: skip
        inner = linear(F.gelu(linear(x, f"{n}.up"), approximate="tanh"), f"{n}.down")
        x = F.layer_norm(x + inner, (WIDTH,), get(f"{n}.norm2.weight"), get(f"{n}.norm2.bias"), 1e-12)
    return torch.softmax(linear(x, "out"), -1).numpy()


def inputs(tokens: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(11)
    marks = np.stack([draw.integers(0, n, tokens) for n in trained.SHAPES], axis=1)
    return draw.normal(size=(tokens, WIDTH)).astype(np.float32), marks


@pytest.mark.parametrize("tokens", [1, 2, 17])
def test_numpy_and_torch_agree(tokens: int) -> None:
    weights = small()
    hidden, marks = inputs(tokens)
    ours = trained.Head(weights, ("O", "A", "B")).probabilities(hidden, marks)
    assert ours.shape == (tokens, 3)
    np.testing.assert_allclose(ours, twin(weights, hidden, marks), atol=1e-4)


def test_shapes_tell_what_lower_case_pieces_do_not() -> None:
    text = "Zenda BBC iPod a1\n\nO'Neill ab"
    pieces = [(0, 3), (3, 5), (6, 9), (10, 14), (15, 17), (19, 20), (21, 26), (27, 29)]
    start, end = (np.array(column) for column in zip(*pieces, strict=True))
    capitals, place, digits, line = trained.shapes(text, start, end).T.tolist()
    assert capitals == [1, 0, 2, 3, 4, 1, 1, 0]
    assert place == [0, 1, 0, 0, 0, 0, 2, 0]
    assert digits == [0, 0, 0, 0, 1, 0, 0, 0]
    assert line == [2, 0, 0, 0, 0, 2, 0, 0]


@given(p=st.floats(0, 1), q=st.floats(0, 1), threshold=st.floats(0.01, 0.9))
def test_the_score_keeps_order_and_puts_the_threshold_at_one_half(
    p: float, q: float, threshold: float
) -> None:
    low, high = sorted((p, q))
    assert trained.rescaled(low, threshold) <= trained.rescaled(high, threshold)
    assert trained.rescaled(threshold, threshold) == 0.5
    assert (trained.rescaled(p, threshold) >= 0.5) == (p >= threshold)


@pytest.mark.parametrize(
    ("between", "before", "after", "joined"),
    [
        (" ", "PERSON", "PERSON", True),
        (". ", "PERSON", "PERSON", True),
        (", ", "PERSON", "PERSON", False),
        (" ", "PERSON", "DATE", False),
        (" (", "MONEY", "QUANTITY", True),
        (", ", "LOCATION", "LOCATION", True),
        (". ", "ORG", "ORG", False),
        ("\n", "ORG", "ORG", False),
        (" of ", "ORG", "ORG", False),
    ],
)
def test_which_words_are_one_mention(between: str, before: str, after: str, joined: bool) -> None:
    assert trained.close(between, before, after) == joined


def test_words_that_tell_nothing_are_no_mention() -> None:
    assert not trained.telling("of the", "ORG") and trained.telling("of Zenda", "ORG")
    assert not trained.telling("block b43", "ADDRESS")
    assert trained.telling("12 Harbour Lane", "ADDRESS")


def test_a_damaged_package_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        trained.load_head(tmp_path)
    (tmp_path / "head.json").write_text(json.dumps({"classes": ["O"]}), encoding="utf-8")
    (tmp_path / "head.npz").write_bytes(b"no zip")
    with pytest.raises(ModelError) as error:
        trained.load_head(tmp_path)
    assert error.value.__suppress_context__


def test_what_ships_is_small_and_speaks_the_policys_language() -> None:
    size = sum(f.stat().st_size for f in trained.MODEL.iterdir())
    assert size <= 12 * 2**20
    head, facts = trained.load_head()
    assert head.classes[0] == "O"
    assert all(entities.canonical(c) in entities.FAMILY_OF for c in head.classes[1:])
    assert set(facts["thresholds"]) == {*head.classes[1:], trained.NAMED_ORG}
    assert all(0 < limit <= 0.5 for limit in facts["thresholds"].values())
    assert facts["tap"] == onnx_ner.TAP


@pytest.fixture(scope="module")
def tagger() -> trained.TrainedTagger:
    return trained.load(TaggerSettings())


@needs_model
def test_a_judgment_nobody_wrote_is_covered(tagger: trained.TrainedTagger) -> None:
    tagging = tagger.tag(JUDGMENT)
    words = [(JUDGMENT[s.start : s.end], s.entity) for s in tagging.spans]
    for needle, entity in [
        ("Rudolf Elphberg", "PERSON"), ("3 March 2005", "DATE"),
        ("1961", "DATE"), ("14 June 1999", "DATE"),
    ]:  # fmt: skip
        assert any(needle in w and e == entity for w, e in words), needle
    assert any("Strelsau" in w for w, _ in words)
    assert tagging.complete and all(s.score >= 0.5 for s in tagging.spans)


@needs_model
@pytest.mark.parametrize(
    "text",
    ["Order 00202555014378 shipped at_millis=1748503543011; revenue grew by +100 000 000.",
     "Commit 9f8d3b6 fixed issue GH-1432 in v2.3.1.", "Error E1234 in module net/http2.",
     "The foundation is a 501(c)3 that invites you; report under section 12/b."],
)  # fmt: skip
def test_numbers_that_nothing_calls_somebodys_are_left_to_the_rules(text: str) -> None:
    """To the net every number is somebody's: an epoch, an order, a page."""
    found = tagging.build(TaggerSettings()).tag(text).spans
    assert not [text[s.start : s.end] for s in found if s.entity in ("ID", "PHONE")]


@needs_model
def test_a_reference_of_no_known_form_is_found_by_the_net() -> None:
    text = "The regional court registered the complaint under Vr IV 17-b/2003 and dismissed it."
    found = tagging.build(TaggerSettings()).tag(text).spans
    assert any("17-b/2003" in text[s.start : s.end] for s in found)


@needs_model
def test_the_shape_of_a_name_is_no_condition(tagger: trained.TrainedTagger) -> None:
    """The same sentence in lower case and in capitals still hides its names."""
    for text in (JUDGMENT.lower(), JUDGMENT.upper()):
        found = " ".join(text[s.start : s.end] for s in tagger.tag(text).spans).lower()
        assert "elphberg" in found


@needs_model
@pytest.mark.parametrize("text", ["", "\n", "…", "a" * 2_000, "😀😀"])
def test_odd_texts_are_read(tagger: trained.TrainedTagger, text: str) -> None:
    assert tagger.tag(text).complete


@needs_model
def test_spans_never_cross_a_line(tagger: trained.TrainedTagger) -> None:
    text = "Mr Rudolf Elphberg\nStrelsau\n3 March 2005\n" * 40
    spans = tagger.tag(text).spans
    assert spans and all("\n" not in text[s.start : s.end] for s in spans)
