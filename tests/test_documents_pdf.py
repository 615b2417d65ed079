"""PDF: words in, plain text out; what has no words is refused."""

import io

import pypdf
import pytest
from pypdf.annotations import Text
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject, NumberObject

from dpredact.documents import Edit, read
from dpredact.errors import DocumentError


def pdf(*pages, password=None, owner=None, picture=False):
    """A PDF with one Helvetica line per string of each page."""
    writer = pypdf.PdfWriter()
    for lines in pages:
        page = writer.add_blank_page(300, 300)
        font = DictionaryObject({
            NameObject("/Type"): NameObject("/Font"), NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        })  # fmt: skip
        resources = DictionaryObject({NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})})
        if picture:
            image = DecodedStreamObject()
            image.set_data(b"\0")
            for key, value in (("/Type", NameObject("/XObject")), ("/Subtype", NameObject("/Image")),
                               ("/Width", NumberObject(1)), ("/Height", NumberObject(1))):  # fmt: skip
                image[NameObject(key)] = value
            resources[NameObject("/XObject")] = DictionaryObject({NameObject("/I"): writer._add_object(image)})
        page[NameObject("/Resources")] = resources
        content = DecodedStreamObject()
        moves = " ".join(f"1 0 0 1 20 {280 - 20 * n} Tm ({line}) Tj" for n, line in enumerate(lines))
        content.set_data(f"BT /F1 12 Tf {moves} ET".encode("latin-1"))
        page[NameObject("/Contents")] = writer._add_object(content)
    if password is not None or owner is not None:
        writer.encrypt(password or "", owner)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_the_words_of_all_pages_come_out_as_text():
    document = read(pdf(["Odalys came on Mon-", "day."], ["Tovin left."]), "a.pdf")
    assert document.text == "Odalys came on Monday.\n\nTovin left.\n"
    assert (document.media_type, document.output_name) == ("text/plain", "a.pdf.txt")
    assert document.render([Edit(0, 6, "[PERSON]")]).startswith(b"[PERSON] came")
    assert "plain text" in document.remarks([])[0]


def test_comments_on_a_page_are_read():
    reader = pypdf.PdfReader(io.BytesIO(pdf(["Words."])))
    writer = pypdf.PdfWriter(clone_from=reader)
    writer.add_annotation(0, Text(text="Ask Odalys", rect=(0, 0, 9, 9)))
    out = io.BytesIO()
    writer.write(out)
    assert "Ask Odalys" in read(out.getvalue(), "a.pdf").text


def test_a_file_that_anyone_may_open_is_read():
    assert "Words" in read(pdf(["Words."], owner="owner"), "a.pdf").text


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pdf(["Odalys"], password="secret"), "encrypted"),
        (pdf(["Odalys"], [], picture=True), "scan"),
        (pdf(["\\001\\002\\003 Odalys"]), "which letters"),
        (b"%PDF-1.7 Odalys", "damaged"),
        (pdf(["Odalys"])[:300], "damaged"),
    ],
)
def test_what_has_no_readable_words_is_refused(data, message):
    with pytest.raises(DocumentError, match=message) as caught:
        read(data, "a.pdf")
    assert "Odalys" not in str(caught.value)
    assert caught.value.next_step


def test_an_empty_page_is_no_scan():
    assert read(pdf([], ["Words."]), "a.pdf").text == "Words.\n"
