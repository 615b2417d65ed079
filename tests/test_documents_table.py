"""CSV and TSV: cells, quotes, delimiters; everything outside an edit keeps its bytes."""

import csv
import io
import re

import pytest

from dpredact.documents import Edit, Kind, read
from dpredact.errors import DocumentError


def replace(document, **words):
    found = re.finditer("|".join(map(re.escape, words)), document.text)
    return document.render([Edit(m.start(), m.end(), words[m.group()]) for m in found])


def rows(data, **options):
    return list(csv.reader(io.StringIO(data.decode("utf-8"), newline=""), **options))


CASE = b'Id,Name,Note\n1,Odalys,This line is about Odalys\n2,Tovin,"Said ""no"", then left"\n'


def test_header_quoting_and_row_count_stay_and_both_columns_change():
    document = read(CASE, "a.csv")
    assert document.render([]) == CASE
    assert replace(document, Odalys="[PERSON]", Tovin="[PERSON]") == (
        b"Id,Name,Note\n1,[PERSON],This line is about [PERSON]\n"
        b'2,[PERSON],"Said ""no"", then left"\n'
    )


def test_each_cell_is_a_block_and_long_free_text_is_prose():
    long = "She came on Monday, and nobody was there to open the door for her."
    document = read(f"Name,Note\nOdalys,{long.replace(',', '')}\n".encode(), "a.csv")
    assert [(b.kind, b.where) for b in document.blocks] == [
        (Kind.VALUE, "row 1, column 1"), (Kind.VALUE, "row 1, column 2"),
        (Kind.VALUE, "row 2, column 1"), (Kind.PROSE, "row 2, column 2"),
    ]  # fmt: skip


def test_labels_are_words_of_a_public_list_only():
    text = read(b"Patient_Name,Odalys phone\nTovin,1\n", "a.csv").text
    assert "patient name: Tovin" in text
    assert text.count("Odalys") == 1


def test_new_text_is_quoted_when_the_table_needs_it():
    data = b'a,b\nx,"y ""q"""\n'
    document = read(data, "a.csv")
    out = replace(document, x='1,"2"\n3', y='"')
    assert rows(out) == [["a", "b"], ['1,"2"\n3', '" "q"']]


def test_a_quoted_newline_is_inside_its_cell():
    data = b'name,note\r\nOdalys,"two\r\nlines, and ""more"""\r\nTovin,x\r\n'
    document = read(data, "a.csv")
    out = replace(document, lines="rows", Tovin="T,1")
    assert rows(out) == [["name", "note"], ["Odalys", 'two\r\nrows, and "more"'], ["T,1", "x"]]
    assert out.startswith(b'name,note\r\nOdalys,"two\r\n')


@pytest.mark.parametrize(
    ("data", "name", "count"),
    [
        (b"a;b;c\n1,5;2;3\n", "a.csv", 6),
        (b"a\tb\n1, 2\t3\n", "a.tsv", 4),
        (b"a|b\n1|2\n", "a.csv", 4),
        (b"a\tb\n1,x\t3\n", "a.csv", 4),
        (b"sep=;\r\na;b,c\r\n", "a.csv", 2),
        (b"only one column\nand, one comma\n", "a.csv", 3),
    ],
)
def test_the_delimiter_is_found(data, name, count):
    document = read(data, name)
    assert len(document.blocks) == count
    assert document.render([]) == data


def test_a_quote_that_never_ends_is_refused_with_its_place():
    with pytest.raises(DocumentError, match="never ends") as caught:
        read(b'a,b\n1,"2\n3,4\n', "a.csv")
    assert "row 2, column 2" in caught.value.place


def test_the_scanner_agrees_with_the_standard_library():
    data = b'a,,"",\n"x,1","y""",z z\n\n,,\n"q"\n'
    document = read(data, "a.csv")
    want = [cell for row in rows(data) for cell in row if cell.strip()]
    assert [document.text[b.start : b.end] for b in document.blocks] == want


def test_tables_in_utf16_stay_utf16():
    data = "Name;Note\r\nOdalys;ü\r\n".encode("utf-16")
    out = replace(read(data, "a.csv"), Odalys="Tovin")
    assert out == "Name;Note\r\nTovin;ü\r\n".encode("utf-16")


def test_a_cell_with_a_sentence_stands_in_marks_that_are_not_written():
    document = read(b"name,note\nOdalys,Said no\nTovin Maraq,x\n", "a.csv")
    assert 'note: "Said no"\n' in document.text and "name: Tovin Maraq\n" in document.text
    assert [document.text[b.start : b.end] for b in document.blocks][3] == "Said no"


def test_a_row_with_one_cell_never_becomes_an_empty_line():
    document = read(b"Odalys\nTovin\n", "a.csv")
    assert document.render([Edit(0, 6, "")]) == b'""\nTovin\n'
