"""Taggers that owners bring: their types must be mapped, their folders whole."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from types import SimpleNamespace

import pytest

from dpredact.errors import Missing, ModelError, PolicyError
from dpredact.lm import catalog
from dpredact.policy import TaggerSettings, entities
from dpredact.tagging import gliner, hf, onnx_ner, presidio

SETTINGS = TaggerSettings()


@pytest.mark.parametrize(
    ("kind", "entity"),
    [
        ("PERSON", "PERSON"),
        ("EMAIL_ADDRESS", "EMAIL"),
        ("NRP", "DEMOGRAPHIC"),
        ("UK_NINO", "NATIONAL_ID"),
        ("IT_PASSPORT", "PASSPORT"),
        ("US_DRIVER_LICENSE", "LICENSE"),
        ("TR_LICENSE_PLATE", "PLATE"),
        ("DE_TAX_ID", "TAX_ID"),
        ("UUID", ""),
        ("MOOD", None),
    ],
)
def test_presidio_types_have_an_entity_or_are_unknown(kind: str, entity: str | None) -> None:
    assert presidio.entity_of(kind) == entity


def test_presidio_spans_come_in_document_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine sees windows; a phone number on a border is one finding."""
    monkeypatch.setattr(presidio, "WINDOW", 60)
    monkeypatch.setattr(presidio, "OVERLAP", 25)

    class Engine:
        def analyze(self, text: str, language: str) -> list[SimpleNamespace]:
            at = text.find("202-555-0143")
            kinds = ("PHONE_NUMBER", "UUID")
            return [
                SimpleNamespace(entity_type=k, start=at, end=at + 12, score=0.7)
                for k in kinds
                if at >= 0
            ]

    for pad in range(0, 80, 5):
        text = "x" * pad + " call 202-555-0143 now " + "y " * 40
        spans = presidio.PresidioTagger(Engine()).tag(text).spans
        assert [text[s.start : s.end] for s in spans] == ["202-555-0143"]
        assert spans[0].entity == "PHONE"


def test_gliner_kinds_are_entities_and_offsets_hold() -> None:
    assert all(entities.canonical(e) == e for e in gliner.KINDS.values())

    class Model:
        def predict_entities(self, text: str, kinds: list[str], threshold: float) -> list[dict]:
            at = text.find("Okafor")
            hit = {"start": at, "end": at + 6, "label": "person", "score": 0.9}
            return [hit] if at >= 0 else []

    text = "so " * 700 + "Okafor " + "so " * 700
    spans = gliner.GlinerTagger(Model()).tag(text).spans
    assert [(text[s.start : s.end], s.entity) for s in spans] == [("Okafor", "PERSON")]


@pytest.mark.parametrize("module", [gliner, hf])
def test_a_folder_is_needed(module: types.ModuleType, tmp_path: Path) -> None:
    for folder in ("", str(tmp_path / "absent")):
        with pytest.raises(PolicyError) as error:
            module.load(SETTINGS, folder)
        assert "FOLDER" in error.value.next_step


def test_an_extra_that_is_not_installed_names_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "presidio_analyzer", None)
    monkeypatch.setitem(sys.modules, "gliner", None)
    with pytest.raises(Missing, match="presidio"):
        presidio.load(SETTINGS)
    with pytest.raises(Missing, match="gliner"):
        gliner.load(SETTINGS, str(tmp_path))


@pytest.mark.parametrize(
    ("label", "entity"), [("B-PER", "PERSON"), ("I-loc", "LOCATION"), ("O", ""), ("B-MOOD", None)]
)
def test_labels_of_public_models(label: str, entity: str | None) -> None:
    assert hf.entity_of(label) == entity


def test_a_label_that_nobody_mapped_is_an_error() -> None:
    assert hf.columns(["O", "B-PER", "I-PER", "B-LOC"]) == {"PERSON": [1, 2], "LOCATION": [3]}
    with pytest.raises(PolicyError, match="MOOD"):
        hf.columns(["O", "B-MOOD"])


def test_every_label_of_the_table_stands_for_an_entity() -> None:
    for table in (hf.LABELS, presidio.TYPES, onnx_ner.KINDS):
        assert all(not e or entities.canonical(e) == e for e in table.values())


@pytest.mark.skipif(not catalog.present("rampart"), reason="run `dpredact models fetch rampart`")
def test_any_exported_model_runs_by_folder(tmp_path: Path) -> None:
    """Rampart under other labels, as somebody's own model would lie in a folder."""
    source = catalog.folder("rampart")
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    known = {"B-GIVEN_NAME", "I-GIVEN_NAME", "B-SURNAME", "I-SURNAME"}
    config["id2label"] = {
        k: (v[:2] + "PER" if v in known else "O") for k, v in config["id2label"].items()
    }
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "tokenizer.json").symlink_to(source / "tokenizer.json")
    (tmp_path / "model.onnx").symlink_to(onnx_ner.model_file(source))
    text = "Please forward this to Jonas Okafor in Boston."
    spans = hf.load(SETTINGS, str(tmp_path)).tag(text).spans
    assert [(text[s.start : s.end], s.entity) for s in spans] == [("Jonas Okafor", "PERSON")]
    with pytest.raises(ModelError):
        (tmp_path / "model.onnx").unlink()
        hf.load(SETTINGS, str(tmp_path))
