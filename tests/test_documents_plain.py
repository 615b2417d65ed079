"""Text and Markdown: offsets are file offsets, other bytes stay, blocks are paragraphs."""

import pytest

from dpredact import documents
from dpredact.documents import Edit, Kind, open_path, read
from dpredact.errors import DocumentError


def words(document, kind=None):
    return [document.text[b.start : b.end] for b in document.blocks if kind in (None, b.kind)]


def test_paragraphs_are_blocks_without_white_space_at_the_ends():
    document = read(b"\n\n  One line\nand another \n \t\nTwo\n\n\n Three", "a.txt")
    assert words(document) == ["One line\nand another", "Two", "Three"]
    assert [b.where for b in document.blocks] == ["line 3", "line 6", "line 9"]
    assert all(b.kind is Kind.PROSE for b in document.blocks)
    assert document.unblocked() == ""


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_line_ends_and_a_missing_final_newline_stay(line_end):
    data = line_end.join(["Odalys came.", "", "Tovin left."]).encode()
    document = read(data, "a.txt")
    assert words(document) == ["Odalys came.", "Tovin left."]
    assert document.render([]) == data
    assert document.render([Edit(0, 6, "[PERSON]")]) == data.replace(b"Odalys", b"[PERSON]")


def test_new_text_takes_the_line_ends_of_the_file():
    document = read(b"one\r\ntwo\r\n", "a.txt")
    assert document.render([Edit(0, 3, "a\nb")]) == b"a\r\nb\r\ntwo\r\n"


def test_offsets_count_code_points():
    text = "😀 e\u0301 Odalys 👩‍👩‍👧"
    document = read(text.encode(), "a.txt")
    at = document.text.index("Odalys")
    assert at == 5
    assert document.render([Edit(at, at + 6, "X")]).decode() == text.replace("Odalys", "X")


def test_edits_must_be_sorted_disjoint_and_inside():
    document = read(b"abcdef", "a.txt")
    for edits in ([(3, 4), (0, 1)], [(0, 3), (2, 4)], [(5, 9)], [(4, 3)]):
        with pytest.raises(ValueError):
            document.render([Edit(start, end, "x") for start, end in edits])


def test_a_long_paragraph_is_cut_at_sentence_ends_and_no_word_is_lost():
    text = "This sentence is about nothing at all. " * 1000
    blocks = words(read(text.encode(), "a.txt"))
    assert len(blocks) > 8
    assert all(block.endswith(".") and len(block) <= 4000 for block in blocks)
    assert " ".join(blocks) == text.strip()


def test_a_word_is_never_cut():
    text = "x" * 10000 + " " + "y" * 10000
    assert words(read(text.encode(), "a.txt")) == ["x" * 10000, "y" * 10000]


def test_text_with_a_grammar_is_never_prose():
    assert {b.kind for b in read(b"name: Odalys\n\nnote: x", "a.yaml").blocks} == {Kind.VALUE}


MARKDOWN = """---
title: Report on Odalys
---
# Heading

Odalys came. See the [report](http://example.org/odalys)
and <mailto:o@example.org> here.

- item one
  goes on
- [x] item two
> quoted

```python
name = "Odalys"

# Heading in code
```

| a | b |
|---|---|

[id]: http://example.org "Tovin"
"""


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_markdown_prose_is_apart_from_what_the_renderer_obeys(line_end):
    text = MARKDOWN.replace("\n", line_end)
    document = read(text.encode(), "a.md")
    prose = [word.replace(line_end, "\n") for word in words(document, Kind.PROSE)]
    assert prose == [
        "Heading", "Odalys came. See the", "and", "here.", "item one\n  goes on", "item two",
        "quoted",
    ]  # fmt: skip
    values = "\n".join(words(document, Kind.VALUE))
    for value in ("title: Report on Odalys", "report", "http://example.org/odalys",
                  "mailto:o@example.org", 'name = "Odalys"', "# Heading in code", "| a | b |",
                  '[id]: http://example.org "Tovin"'):  # fmt: skip
        assert value in values
    assert document.render([]) == text.encode()
    assert "```python" in document.unblocked()
    assert "Odalys" not in document.unblocked()


def test_everything_holds_what_lies_outside_the_blocks():
    document = read(b"```Odalys\ncode\n```\n", "a.md")
    assert "Odalys" in document.unblocked()
    assert "Odalys" in document.everything()


def test_markdown_code_that_never_ends_and_inline_code_at_the_start():
    assert words(read(b"```\ncode\n\nmore", "a.md"), Kind.VALUE) == ["code", "more"]
    assert words(read(b"```x``` is inline", "a.md"), Kind.PROSE) == ["```x``` is inline"]


def test_open_path_gives_the_name_without_the_folder(tmp_path):
    file = tmp_path / "note.txt"
    file.write_bytes(b"hello")
    assert open_path(file).name == "note.txt"


def test_a_file_that_cannot_be_opened_is_a_document_error(tmp_path):
    for path in (tmp_path, tmp_path / "absent.txt"):
        with pytest.raises(DocumentError) as caught:
            open_path(path)
        assert str(tmp_path.parent) not in str(caught.value)


def test_a_file_over_the_limit_is_refused_before_it_is_decoded(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "LARGEST", 2**20)
    file = tmp_path / "long.txt"
    file.write_bytes(b"x" * (2**20 + 1))
    with pytest.raises(DocumentError, match="1 MiB"):
        open_path(file)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"{\\rtf1 Odalys}", "a.txt"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1....", "a.doc"),
        (b"\x1f\x8b\x08....", "a.txt"),
        (b"From a@b\n\nx", "box.mbox"),
        (b"\x89PNG\r\n\x1a\n", "a.png"),
        (b"\xff\xd8\xff\xe0", "photo"),
    ],
)
def test_formats_whose_words_would_be_missed_are_refused(data, name):
    with pytest.raises(DocumentError) as caught:
        read(data, name)
    assert caught.value.next_step


def test_nothing_of_the_text_stands_in_a_repr():
    document = read(b"Odalys", "a.txt")
    assert "Odalys" not in repr(document) + repr(Edit(0, 1, "Odalys")) + repr(document._decoded)


def test_an_item_of_a_nested_list_is_no_code():
    document = read(b"- a\n\n    - Odalys came\n\n    code here\n", "a.md")
    assert words(document, Kind.PROSE) == ["a", "Odalys came"]
    assert words(document, Kind.VALUE) == ["code here"]
