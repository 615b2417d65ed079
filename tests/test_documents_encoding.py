"""Bytes to text and back: marks, declarations, guesses, refusals."""

import codecs

import pytest

from dpredact.documents import Edit, Reading, read
from dpredact.documents.encoding import decode
from dpredact.errors import DocumentError

GERMAN = "Grüße aus Köln, Frau Müller ist am 3. März verstorben. Die Ärztin hat es bestätigt."
FRENCH = "L'été dernier, Mme Lefèvre a été reçue à l'hôpital Saint-Étienne où elle est restée."
RUSSIAN = "Сообщение от Ивана Петрова, он живет в Москве и работает врачом в больнице."


@pytest.mark.parametrize(
    ("text", "encoding", "found"),
    [
        (GERMAN, "utf-8", "utf-8"),
        (GERMAN, "utf-8-sig", "utf-8"),
        (GERMAN, "utf-16", "utf-16-le"),
        (GERMAN, "utf-16-le", "utf-16-le"),
        (GERMAN, "utf-16-be", "utf-16-be"),
        (GERMAN, "utf-32", "utf-32-le"),
        (GERMAN, "cp1252", "cp1252"),
        (FRENCH, "latin-1", "cp1252"),
        (RUSSIAN, "cp1251", "cp1251"),
        (RUSSIAN, "koi8-r", "koi8_r"),
        ("", "utf-8", "utf-8"),
        ("Odalys 😀 came", "utf-16-le", "utf-16-le"),
    ],
)
def test_an_encoding_is_found_and_written_back(text, encoding, found):
    data = text.encode(encoding)
    decoded = decode(data)
    assert (decoded.text, decoded.encoding) == (text, found)
    assert decoded.encode(decoded.text) == data


@pytest.mark.parametrize(
    "data",
    [
        b"abc \xff def",
        b"\xff" * 40,
        "naïve résumé".encode("latin-1"),  # too short to be certain
        "She saw Frau Müller".encode("mac_roman"),
        "Patient Müller wurde am Montag aufgenommen.".encode("mac_roman"),
        "李小明住在北京市海淀区".encode("gb18030"),
        b"text with a \0 in it",
        codecs.BOM_UTF16_LE + b"abc",  # odd length
        codecs.BOM_UTF8 + b"\xff",
        b"\x80\x81\x82\x83" * 50,
    ],
)
def test_what_is_not_certain_is_refused(data):
    with pytest.raises(DocumentError) as caught:
        read(data, "note.txt")
    assert caught.value.exit_code == 3
    assert caught.value.next_step
    assert caught.value.place.startswith("note.txt")


def test_a_declared_encoding_is_believed_if_it_fits():
    data = "Zoë".encode("cp1252")
    assert read(data, "a.txt", Reading(encoding="windows-1252")).text == "Zoë"
    with pytest.raises(DocumentError):
        read(data, "a.txt", Reading(encoding="utf-8"))
    assert read("Zoë".encode(), "a.txt", Reading(encoding="no-such-encoding")).text == "Zoë"
    assert read("Zoë".encode(), "a.txt", Reading(encoding="base64")).text == "Zoë"


def test_a_declared_encoding_that_cannot_be_written_back_is_refused():
    with pytest.raises(DocumentError):
        read(b"+AGEAYg- x", "a.txt", Reading(encoding="utf-7"))  # 'ab x', which it writes plainly


def test_an_html_declaration_is_found():
    data = '<meta charset="iso-8859-1"><p>Zoë</p>'.encode("latin-1")
    assert "Zoë" in read(data, "a.html").text


def test_new_text_that_a_legacy_encoding_cannot_hold_makes_the_file_utf8_and_says_so():
    document = read(GERMAN.encode("cp1252"), "a.txt")
    edits = [Edit(0, 5, "漢字")]
    out = document.render(edits)
    assert out.startswith(codecs.BOM_UTF8)
    assert read(out, "a.txt").text == "漢字" + GERMAN[5:]
    assert "UTF-8" in document.remarks(edits)[0]
    assert document.remarks([Edit(0, 5, "Gruß")]) == ()


def test_a_lone_surrogate_is_an_error_not_a_damaged_file():
    with pytest.raises(DocumentError):
        read(b"abc", "a.txt").render([Edit(0, 1, "\ud800")])


def test_a_refusal_does_not_quote_the_file():
    with pytest.raises(DocumentError) as caught:
        read("geheim Odalys \xff\xfe\xfd".encode("latin-1") * 3, "a.txt")
    assert "Odalys" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
