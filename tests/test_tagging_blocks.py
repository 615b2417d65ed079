"""Tagging a whole document: no span crosses a block border, and what lies between is left."""

from __future__ import annotations

from collections.abc import Sequence

from dpredact import documents, tagging
from dpredact.documents.interface import Block, Document, Edit, Kind
from dpredact.policy import TaggerSettings
from dpredact.tagging import combined
from dpredact.tagging.interface import Span, Tagging


class Paper(Document):
    """Text in blocks with whatever lies between."""

    name, media_type = "paper.txt", "text/plain"

    def __init__(self, text: str, *blocks: tuple[int, int]) -> None:
        self.text = text
        self.blocks = tuple(Block(a, b, Kind.PROSE) for a, b in blocks)

    def render(self, edits: Sequence[Edit]) -> bytes:
        raise NotImplementedError


class Fixed:
    name = "fixed"

    def __init__(self, *spans: Span) -> None:
        self.spans = spans

    def tag(self, text: str) -> Tagging:
        return Tagging(self.spans)


def test_a_span_over_a_border_is_cut_there_and_trimmed() -> None:
    paper = Paper("met Odalys  Brennwald now", (0, 11), (12, 25))
    spans = combined.tag_blocks(Fixed(Span(4, 21, "PERSON", 1.0, (), 0)), paper).spans
    assert [(paper.text[s.start : s.end], s.identity) for s in spans] == [("Odalys", 0), ("Brennwald", 0)]


def test_what_lies_between_blocks_is_no_span() -> None:
    paper = Paper("one Odalys two", (0, 3), (11, 14))
    assert combined.tag_blocks(Fixed(Span(4, 10, "PERSON")), paper).spans == ()


def test_many_blocks_and_spans_in_order() -> None:
    text = "ab " * 500
    paper = Paper(text, *((i, i + 2) for i in range(0, 1500, 3)))
    spans = [Span(i, i + 2, "PERSON") for i in range(0, 1500, 6)]
    assert combined.tag_blocks(Fixed(*spans), paper).spans == tuple(spans)


def test_tag_document_reads_a_table_with_its_header() -> None:
    """A cell under "Name" is a name, even one that stands for nothing else."""
    table = documents.read(b"Id,Name,Town\n1,Tovin,Reading\n", "t.csv")
    found = tagging.tag_document(table, TaggerSettings(use=("patterns",))).spans
    assert [(table.text[s.start : s.end], s.entity) for s in found] == [("Tovin", "PERSON"), ("Reading", "LOCATION")]
