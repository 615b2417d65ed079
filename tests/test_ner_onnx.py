"""Rampart through onnxruntime: spans on invented texts, windows, and the tapped layer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dpredact.errors import ModelError
from dpredact.lm import catalog
from dpredact.policy import TaggerSettings
from dpredact.tagging import onnx_ner
from dpredact.tagging.interface import Span

needs_model = pytest.mark.skipif(
    not catalog.present("rampart"), reason="run `dpredact models fetch rampart`"
)
NOTE = "Send it to Mr Jonas Okafor, 12 Harbour Lane, Apt 4B, Springfield, IL 62704 by Friday."


@pytest.fixture(scope="module")
def tagger() -> onnx_ner.OnnxTagger:
    return onnx_ner.load(TaggerSettings())


def found(tagger: onnx_ner.OnnxTagger, text: str) -> set[tuple[str, str]]:
    return {(text[s.start : s.end], s.entity) for s in tagger.tag(text).spans}


@needs_model
@pytest.mark.parametrize("change", [str, str.upper, str.lower], ids=["as is", "upper", "lower"])
def test_names_and_addresses_whatever_the_case(tagger: onnx_ner.OnnxTagger, change) -> None:
    spans = {(w.lower(), e) for w, e in found(tagger, change(NOTE))}
    assert ("jonas okafor", "PERSON") in spans
    assert ("12 harbour lane, apt 4b", "ADDRESS") in spans
    assert ("springfield, il", "LOCATION") in spans


@needs_model
def test_a_name_is_found_wherever_the_window_border_falls(tagger: onnx_ner.OnnxTagger) -> None:
    """Tokens before the name move the border over it, one by one."""
    for pad in range(130, 200, 3):
        text = "so " * pad + "Then Jonas Okafor called. " + "it was so " * 60
        assert any("Okafor" in w for w, _ in found(tagger, text)), pad


@needs_model
def test_spans_hold_whole_words_and_offsets_count_code_points(tagger: onnx_ner.OnnxTagger) -> None:
    text = "😀 Zoë Brennwäld and Jose\u0301 Maraq met in Kraków."
    names = {w for w, e in found(tagger, text) if e == "PERSON"}
    assert "Zoë Brennwäld" in names and any("Maraq" in n for n in names)


@needs_model
@pytest.mark.parametrize("text", ["", " \n", "…", "😀", "a" * 5_000, "\u200b"])
def test_odd_texts_are_read(tagger: onnx_ner.OnnxTagger, text: str) -> None:
    assert tagger.tag(text).complete


@needs_model
def test_two_readers_pay_once(tagger: onnx_ner.OnnxTagger, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = onnx_ner.rampart()
    runs = []
    inner = encoder._run
    monkeypatch.setattr(encoder, "_run", lambda ids: runs.append(1) or inner(ids))
    first = encoder.read("A text that nobody has read before.")
    assert encoder.read("A text that nobody has read before.") is first and len(runs) == 1
    encoder.read("Another.")
    assert len(runs) == 2


@needs_model
def test_the_tap_gives_the_inner_layer_and_leaves_the_answer_alone() -> None:
    folder = catalog.folder("rampart")
    plain, tap = onnx_ner.Encoder(folder), onnx_ner.rampart()
    a, b = plain.read(NOTE), tap.read(NOTE)
    assert np.array_equal(a.probabilities, b.probabilities) and not a.hidden
    assert b.hidden[0].shape == (len(b.start) + 2, 384)


@needs_model
def test_a_foreign_paragraph_is_a_gap(tagger: onnx_ner.OnnxTagger) -> None:
    french = "Il est dans la maison avec les enfants et ne sait pas que nous sommes là pour lui."
    tagging = tagger.tag(french)
    assert not tagging.complete and "French" in tagging.reasons[0]


def test_a_folder_without_a_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as error:
        onnx_ner.Encoder(tmp_path)
    assert error.value.__suppress_context__


def reading(text: str, scores: list[float]) -> tuple[onnx_ner.Reading, np.ndarray]:
    """One token a character run of length 2, with the given scores."""
    start = np.arange(0, len(text), 2)
    end = np.minimum(start + 2, len(text))
    return onnx_ner.Reading(start, end, np.zeros((len(start), 1)), [], []), np.array(scores)


def runs(text: str, scores: list[float]) -> Iterator[str]:
    read, values = reading(text, scores)
    return (text[a:b] for a, b, _ in onnx_ner.runs(text, read, values, 0.5))


def test_one_sure_piece_makes_the_whole_word_a_finding() -> None:
    assert list(runs("Okafor", [0.1, 0.9, 0.1])) == ["Okafor"]
    assert list(runs("Okafor", [0.1, 0.4, 0.1])) == []


@pytest.mark.parametrize(
    ("text", "entity", "good"),
    [
        ("call 030 23125 000", "PHONE", True),
        ("at 0302312500a", "PHONE", False),
        ("account 7391 0042 66", "ACCOUNT", True),
        ("at_millis=1748503543011", "TAX_ID", False),
        ("tax id 1748503543", "TAX_ID", True),
        ("batch 538400", "ADDRESS", False),
    ],
)
def test_a_number_needs_a_word_that_says_what_it_is(text: str, entity: str, good: bool) -> None:
    start = next(i for i, c in enumerate(text) if c.isdigit())
    end = max(i for i, c in enumerate(text) if c.isdigit()) + 1
    assert onnx_ner.plausible(text, Span(start, end, entity)) == good
