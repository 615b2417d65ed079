"""JSON and JSON lines: string values change, keys and layout do not."""

import json
import re

import pytest

from dpredact.documents import Edit, Kind, read
from dpredact.errors import DocumentError


def replace(document, words):
    found = re.finditer("|".join(map(re.escape, words)), document.text)
    return document.render([Edit(m.start(), m.end(), words[m.group()]) for m in found])


def words(document):
    return [document.text[b.start : b.end] for b in document.blocks]


DATA = b'{ "name" : "Odalys \\u00e9\\ud83d\\ude00",\r\n  "Odalys":1.50,"list":["a\\n\\"b\\"", true, null]}'


def test_only_string_values_are_blocks_and_layout_stays():
    document = read(DATA, "a.json")
    assert words(document) == ["Odalys é😀", 'a\n"b"']
    assert document.render([]) == DATA
    assert replace(document, {"Odalys": "[PERSON]"}) == DATA.replace(
        b'"Odalys \\u', b'"[PERSON] \\u'
    )


def test_a_key_is_found_outside_the_blocks():
    assert "Odalys" in read(DATA, "a.json").unblocked()
    assert "Zoë" in read(b'{"Zo\\u00eb": 1}', "a.json").unblocked()


def test_new_text_is_escaped_as_the_file_does_it():
    document = read(b'{"a": "x", "b": "\\u00e9"}', "a.json")
    out = replace(document, {"x": 'ü"\\\n'})
    assert out == b'{"a": "\\u00fc\\"\\\\\\n", "b": "\\u00e9"}'
    document = read('{"a": "x", "b": "é"}'.encode(), "a.json")
    assert replace(document, {"x": "ü"}) == '{"a": "ü", "b": "é"}'.encode()


def test_keys_that_look_like_data_are_values_and_stay_apart():
    data = b'{"o@example.org": 1, "t@example.org": 2, "plain_key": 3}'
    document = read(data, "a.json")
    out = replace(document, {"o@example.org": "[EMAIL]", "t@example.org": "[EMAIL]"})
    assert json.loads(out) == {"[EMAIL]": 1, "[EMAIL] 2": 2, "plain_key": 3}


def test_a_long_number_that_goes_becomes_a_string():
    data = b'{"phone": 2025550143, "n": 12, "x": 20255501}'
    document = read(data, "a.json")
    assert "phone: 2025550143" in document.text
    out = replace(document, {"2025550143": "[PHONE]", "20255501": "11111111"})
    assert out == b'{"phone": "[PHONE]", "n": 12, "x": 11111111}'


def test_json_lines_are_read_line_by_line():
    data = b'{"name": "Odalys"}\r\n\r\n["Tovin"]\n'
    document = read(data, "a.jsonl")
    assert [(w, b.where) for w, b in zip(words(document), document.blocks, strict=True)] == [
        ("Odalys", "line 1"), ("Tovin", "line 3"),
    ]  # fmt: skip
    assert document.render([]) == data


def test_long_strings_are_prose_cut_at_blank_lines():
    prose = "She came on Monday and nobody was there to open the door for her at all."
    document = read(json.dumps({"note": f"{prose}\n\n{prose}"}).encode(), "a.json")
    assert [b.kind for b in document.blocks] == [Kind.PROSE, Kind.PROSE]
    assert words(document) == [prose, prose]


@pytest.mark.parametrize(
    ("data", "name", "place"),
    [
        (b'{"a": "Odalys}', "a.json", "line 1, column 7"),
        (b'{"a": 1}\n{"a" 2}\n', "a.jsonl", "line 2"),
        (b'{"a": 1} x', "a.json", "line 1"),
        (b"", "a.json", "line 1"),
        (b"[" * 200000, "a.json", ""),
    ],
)
def test_malformed_json_is_refused_with_its_place_and_without_its_words(data, name, place):
    with pytest.raises(DocumentError) as caught:
        read(data, name)
    assert place in caught.value.place
    assert "Odalys" not in str(caught.value)


def test_half_a_surrogate_pair_reads_as_unknown_and_keeps_its_spelling():
    data = b'{"a": "x\\ud800 Odalys"}'
    document = read(data, "a.json")
    assert "x\ufffd Odalys" in document.text
    assert replace(document, {"Odalys": "O"}) == b'{"a": "x\\ud800 O"}'
