"""Corrections by hand: what is read, and that a stale or wrong file is refused."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from dpredact import documents
from dpredact.errors import DocumentError
from dpredact.tagging import sidecar
from dpredact.tagging.interface import Span, Tagging

TEXT = "Patient Odalys Brennwald. Odalys left."


@pytest.fixture
def note(tmp_path: Path) -> Path:
    path = tmp_path / "note.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def saved(note: Path, *lines: dict) -> Path:
    sidecar.write(note, documents.open_path(note), Tagging((Span(8, 24, "PERSON"),)))
    target = sidecar.beside(note)
    if lines:
        head = target.read_text().split("\n")[0]
        target.write_text("\n".join([head, *map(json.dumps, lines)]), encoding="utf-8")
    return target


def test_what_was_saved_is_read_back(note: Path) -> None:
    target = saved(note)
    assert target.name == "note.txt.tags.jsonl"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    tagging = sidecar.load(note, documents.open_path(note))
    assert tagging and tagging.complete
    assert [(s.start, s.end, s.entity, s.identity) for s in tagging.spans] == [(8, 24, "PERSON", 0)]


def test_no_sidecar_is_none(note: Path) -> None:
    assert sidecar.load(note, documents.open_path(note)) is None


def test_words_stand_for_every_mention(note: Path) -> None:
    saved(note, {"text": "Odalys", "entity": "PERSON"}, {"start": 15, "end": 24, "entity": "ID"})
    spans = sidecar.load(note, documents.open_path(note)).spans
    assert [(s.start, s.end) for s in spans] == [(8, 14), (15, 24), (26, 32)]


def test_a_changed_text_makes_it_stale(note: Path) -> None:
    saved(note)
    note.write_text(TEXT + "!", encoding="utf-8")
    with pytest.raises(DocumentError, match="stale"):
        sidecar.load(note, documents.open_path(note))


def test_saving_does_not_overwrite(note: Path) -> None:
    saved(note)
    with pytest.raises(FileExistsError):
        saved(note)


@pytest.mark.parametrize(
    "line",
    [
        {"start": 8, "end": 8, "entity": "PERSON"},
        {"start": 8, "end": 999, "entity": "PERSON"},
        {"start": True, "end": 9, "entity": "PERSON"},
        {"start": 8, "end": 24, "entity": "SHOE"},
        {"start": 8, "end": 24, "entity": "ID"},  # the family is a type too: fine alone, but
        {"text": "nowhere", "entity": "PERSON"},
        {"text": "", "entity": "PERSON"},
    ],
)
def test_wrong_lines_are_refused(note: Path, line: dict) -> None:
    saved(note, {"start": 8, "end": 14, "entity": "PERSON"}, line)  # … overlapping the first
    with pytest.raises(DocumentError) as error:
        sidecar.load(note, documents.open_path(note))
    assert "Odalys" not in str(error.value) and "nowhere" not in str(error.value)


def test_damaged_files_are_refused(note: Path) -> None:
    target = saved(note)
    for text in ("", "not json", '{"schema": 2, "kind": "tags"}', "[1]"):
        target.write_text(text, encoding="utf-8")
        with pytest.raises(DocumentError):
            sidecar.load(note, documents.open_path(note))


def test_spans_over_a_block_border_are_refused(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("Name,Town\nOdalys,Lisbon\n", encoding="utf-8")
    document = documents.open_path(table)
    head = {"schema": 1, "kind": "tags", "digest": sidecar.digest(document.text)}
    at = document.text.index("Odalys")
    line = {"start": at, "end": document.text.index("Lisbon") + 2, "entity": "PERSON"}
    with pytest.raises(DocumentError, match="border"):
        sidecar.parse("\n".join(map(json.dumps, (head, line))), document)
