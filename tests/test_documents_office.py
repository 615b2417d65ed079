"""Word files: every part is searched, values over runs are found, formatting stays."""

import io
import re
import zipfile

import docx
import pytest
from docx.opc.constants import RELATIONSHIP_TYPE as RT
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from dpredact.documents import Edit, Kind, Reading, read
from dpredact.documents import package
from dpredact.errors import DocumentError

TYPES = "[Content_Types].xml"
WNS = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


def saved(document):
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def full():
    """A Word file with Odalys Brennwald in every corner that python-docx reaches."""
    document = docx.Document()
    document.core_properties.author = "Odalys Brennwald"
    document.core_properties.title = "About Odalys"
    document.add_heading("Report on Odalys", 1)
    paragraph = document.add_paragraph("The claimant ")
    paragraph.add_run("Oda").bold = True
    paragraph.add_run("lys Brenn").italic = True
    paragraph.add_run("wald").underline = True
    last = paragraph.add_run(" came.\nNew line\there.")
    table = document.add_table(1, 2)
    table.cell(0, 0).text = "Odalys Brennwald"
    table.cell(0, 1).text = "202-555-0143"
    section = document.sections[0]
    section.header.paragraphs[0].text = "Header Odalys"
    section.footer.paragraphs[0].text = "Footer Odalys"
    document.add_comment(last, text="Comment on Odalys", author="Odalys Brennwald", initials="OB")
    link = document.add_paragraph("See ")
    rel = document.part.relate_to("mailto:odalys%20b@example.com", RT.HYPERLINK, is_external=True)
    link._p.append(parse_xml(
        f'<w:hyperlink {nsdecls("w", "r")} r:id="{rel}"><w:r><w:t>Odalys\' page</w:t></w:r></w:hyperlink>'
    ))  # fmt: skip
    changes = document.add_paragraph("Changed: ")
    for element in (
        f'<w:ins {nsdecls("w")} w:id="1" w:author="Odalys Brennwald" w:date="2024-01-01T00:00:00Z">'
        "<w:r><w:t>inserted Odalys</w:t></w:r></w:ins>",
        f'<w:del {nsdecls("w")} w:id="2" w:author="Odalys Brennwald" w:date="2024-01-01T00:00:00Z">'
        "<w:r><w:delText>deleted Oda</w:delText></w:r><w:r><w:delText>lys</w:delText></w:r></w:del>",
        f'<w:r {nsdecls("w")}><w:instrText> HYPERLINK "mailto:oda</w:instrText></w:r>',
        f'<w:r {nsdecls("w")}><w:instrText>lys@example.com" </w:instrText></w:r>',
        f'<w:sdt {nsdecls("w")}><w:sdtPr><w:alias w:val="Odalys"/><w:dataBinding w:xpath="/x" '
        'w:storeItemID="{1}"/></w:sdtPr><w:sdtContent><w:r><w:t>control Odalys</w:t></w:r>'
        "</w:sdtContent></w:sdt>",
        f'<w:r {nsdecls("w")}><w:pict xmlns:v="urn:schemas-microsoft-com:vml"><v:shape alt="alt Odalys">'
        "<v:textbox><w:txbxContent><w:p><w:r><w:t>box Oda</w:t></w:r><w:r><w:t>lys</w:t></w:r></w:p>"
        "</w:txbxContent></v:textbox></v:shape></w:pict></w:r>",
    ):
        changes._p.append(parse_xml(element))
    return saved(document)


def with_parts(data, **parts):
    """The package with more parts; their content types are set by suffix."""
    old = package.unpack(data)
    old.update({name.replace("__", "/").replace("_DOT_", "."): body for name, body in parts.items()})
    return package.pack(old)


def words(document, kind=None):
    return [document.text[b.start : b.end] for b in document.blocks if kind in (None, b.kind)]


def redacted(document):
    found = re.finditer(r"Odalys( Brennwald)?|odalys", document.text)
    return document.render([Edit(m.start(), m.end(), "[PERSON]") for m in found])


def all_bytes(data):
    return {name: body for name, body in package.unpack(data).items()}


def test_every_corner_is_searched():
    text = read(full(), "a.docx").text
    for found in (
        "Report on Odalys", "The claimant Odalys Brennwald came.\nNew line\there.", "Header Odalys",
        "Footer Odalys", "Comment on Odalys", "About Odalys", "mailto:odalys b@example.com",
        "See Odalys' page", "inserted Odalys", "deleted Odalys", "mailto:odalys@example.com",
        "control Odalys", "alt Odalys", "box Odalys",
    ):  # fmt: skip
        assert found in text, found


def test_nothing_is_left_and_the_result_opens():
    out = redacted(read(full(), "a.docx"))
    for name, body in all_bytes(out).items():
        assert not re.search(rb"(?i)odalys|brennwald|2024-01-01", body), name
    again = read(out, "a.docx")
    assert not re.search("(?i)odalys|brennwald", again.everything())
    opened = docx.Document(io.BytesIO(out))
    assert opened.paragraphs[1].text == "The claimant [PERSON] came.\nNew line\there."
    runs = {run.text: run for run in opened.paragraphs[1].runs}
    assert runs["[PERSON]"].bold and runs["The claimant "].bold is None
    assert opened.tables[0].cell(0, 0).text == "[PERSON]"
    assert opened.tables[0].cell(0, 1).text == "202-555-0143"


def test_metadata_goes_even_without_edits():
    document = read(full(), "a.docx")
    out = document.render([])
    opened = docx.Document(io.BytesIO(out))
    assert opened.core_properties.author == opened.core_properties.title == ""
    body = all_bytes(out)["word/document.xml"]
    assert b"rsid" not in body and b"dataBinding" not in body and b"w:date=" not in body
    assert b'w:author="Author"' in body
    assert not [name for name in all_bytes(out) if "thumbnail" in name]
    assert b"thumbnail" not in all_bytes(out)["_rels/.rels"]
    with zipfile.ZipFile(io.BytesIO(out)) as zipped:
        assert {info.date_time for info in zipped.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert "properties" in document.remarks([])[0]


def test_parts_without_change_keep_their_bytes():
    data = full()
    before, after = all_bytes(data), all_bytes(read(data, "a.docx").render([]))
    for part in ("word/styles.xml", "word/theme/theme1.xml", "word/numbering.xml"):
        assert before[part] == after[part]


def test_body_is_prose_and_cells_and_headers_are_values():
    document = read(full(), "a.docx")
    prose, values = words(document, Kind.PROSE), words(document, Kind.VALUE)
    assert "The claimant Odalys Brennwald came.\nNew line\there." in prose
    assert "Comment on Odalys" in prose
    for value in ("Odalys Brennwald", "Header Odalys", "deleted Odalys", "202-555-0143"):
        assert value in values


def test_a_paragraph_written_anew_takes_its_main_look_and_new_lines_are_breaks():
    document = read(full(), "a.docx")
    block = next(b for b in document.blocks if document.text[b.start : b.end].startswith("The clai"))
    out = document.render([Edit(block.start, block.end, "One\nTwo\tthree ")])
    paragraph = docx.Document(io.BytesIO(out)).paragraphs[1]
    assert paragraph.text == "One\nTwo\tthree "
    assert not any(run.bold or run.italic for run in paragraph.runs if run.text)


def test_characters_that_xml_forbids_are_dropped():
    document = read(full(), "a.docx")
    at = document.text.index("Report")
    out = document.render([Edit(at, at + 6, "a\x00\x0b\ud800b & <c>")])
    assert docx.Document(io.BytesIO(out)).paragraphs[0].text == "ab & <c> on Odalys"


def test_notes_properties_and_hidden_parts_are_searched():
    note = f'<w:footnotes {WNS}><w:footnote><w:p><w:r><w:t>Note on Oda</w:t></w:r><w:r><w:t>lys</w:t>'
    note += "</w:r></w:p></w:footnote></w:footnotes>"
    custom = (
        '<Properties xmlns="http://schemas.openxmlformats.org/officeDocument/2006/custom-properties" '
        'xmlns:vt="http://schemas.openxmlformats.org/officeDocument/2006/docPropsVTypes">'
        '<property name="Odalys key"><vt:lpwstr>Odalys value</vt:lpwstr></property></Properties>'
    )
    app = '<Properties xmlns="x"><Company>Odalys Ltd</Company><Pages>3</Pages></Properties>'
    document = read(
        with_parts(
            full(),
            word__footnotes_DOT_xml=note.encode(),
            docProps__custom_DOT_xml=custom.encode(),
            docProps__app_DOT_xml=app.encode(),
            customXml__item9_DOT_xml=b"<a><!-- Odalys in a comment --><b>Odalys here</b>Odalys tail</a>",
        ),
        "a.docx",
    )
    for found in ("Note on Odalys", "Odalys key", "Odalys value", "Odalys Ltd", "Odalys here",
                  "Odalys in a comment", "Odalys tail"):  # fmt: skip
        assert found in document.text, found
    for name, body in all_bytes(redacted(document)).items():
        assert b"Odalys" not in body, name


def test_what_no_edit_reaches_is_still_found():
    style = (f'<w:styles {WNS}><w:style w:customStyle="1" w:styleId="x"><w:name w:val="Odalys Style"/>'
             "</w:style></w:styles>")  # fmt: skip
    rest = read(
        with_parts(
            full(),
            word__styles_DOT_xml=style.encode(),
            customXml__item9_DOT_xml=b'<a b="Tovin Maraq"/>',
            word__vantongeren_DOT_xml=b"<a/>",
        ),
        "a.docx",
    ).unblocked()
    assert "Odalys Style" in rest and "Tovin Maraq" in rest and "vantongeren" in rest


def test_an_ordinary_file_has_next_to_nothing_outside_its_blocks():
    rest = read(saved(docx.Document()), "a.docx").unblocked()
    assert set(rest.split("\n")) <= {"", "Macro Text Char", "MacroTextChar"}


def test_embedded_documents_are_searched_and_written_back():
    inner = docx.Document()
    inner.add_paragraph("Embedded Odalys")
    document = read(with_parts(full(), word__embeddings__x_DOT_docx=saved(inner)), "a.docx")
    assert "Embedded Odalys" in document.text
    out = all_bytes(redacted(document))["word/embeddings/x.docx"]
    assert docx.Document(io.BytesIO(out)).paragraphs[0].text == "Embedded [PERSON]"


def test_an_embedded_sheet_keeps_its_numbers_and_a_number_that_goes_becomes_a_word():
    ns = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    sheet = package.pack({
        TYPES: b'<Types xmlns="t"/>',
        "xl/sharedStrings.xml": f"<sst {ns}><si><r><t>Oda</t></r><r><t>lys</t></r></si></sst>".encode(),
        "xl/worksheets/sheet1.xml": f'<worksheet {ns}><c r="A1" t="s"><v>0</v></c>'
        f'<c r="B1"><v>2025550143</v></c><c r="C1"><v>12</v></c></worksheet>'.encode(),
    })  # fmt: skip
    document = read(with_parts(full(), word__embeddings__x_DOT_xlsx=sheet), "a.docx")
    at = document.text.index("2025550143")
    out = all_bytes(document.render([Edit(at, at + 10, "[PHONE]")]))["word/embeddings/x.xlsx"]
    body = all_bytes(out)["xl/worksheets/sheet1.xml"]
    assert b'<c r="B1" t="str"><v>[PHONE]</v></c><c r="C1"><v>12</v></c>' in body
    strings = all_bytes(all_bytes(redacted(document))["word/embeddings/x.xlsx"])["xl/sharedStrings.xml"]
    assert b"<t>[PERSON]</t></r><r><t></t>" in strings or b"<t>[PERSON]</t></r><r><t/>" in strings
    with pytest.raises(DocumentError, match="not a Word file"):
        read(sheet, "x.xlsx")


def bomb(name="word/document.xml", size=80 * 2**20):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr(TYPES, b"wordprocessingml")
        zipped.writestr(name, bytes(size))
    return out.getvalue()


def nested(depth):
    data = saved(docx.Document())
    for _ in range(depth):
        data = with_parts(saved(docx.Document()), word__embeddings__x_DOT_docx=data)
    return data


def encrypted():
    data = bytearray(saved(docx.Document()))
    for at in (m.start() for m in re.finditer(b"PK\x01\x02", data)):
        data[at + 8] |= 1
    return bytes(data)


def doubled():
    out = io.BytesIO(saved(docx.Document()))
    with pytest.warns(UserWarning), zipfile.ZipFile(out, "a") as zipped:
        zipped.writestr("word/document.xml", b"<Odalys/>")
    return out.getvalue()


DTD = b'<!DOCTYPE a [<!ENTITY x "Odalys">]><a>&x;</a>'
STRICT = b'<w:document xmlns:w="http://purl.oclc.org/ooxml/wordprocessingml/main"/>'
BAD = {
    "a zip bomb": (bomb, "zip bomb"),
    "a small bomb": (lambda: bomb(size=3 * 2**20), "zip bomb"),
    "twenty deep": (lambda: nested(20), "deep"),
    "a password": (encrypted, "encrypted"),
    "two parts of one name": (doubled, "one name"),
    "half a file": (lambda: full()[:2000], "damaged"),
    "a picture": (lambda: with_parts(full(), word__media__image1_DOT_png=PNG), "picture"),
    "an old object": (lambda: with_parts(full(), word__embeddings__o1_DOT_bin=b"\xd0\xcf"), "part"),
    "a macro": (lambda: with_parts(full(), word__vbaProject_DOT_bin=b"\xd0\xcf"), "part"),
    "a signature": (lambda: with_parts(full(), _xmlsignatures__sig1_DOT_xml=b"<a/>"), "signed"),
    "bad xml": (lambda: with_parts(full(), word__header9_DOT_xml=b"<Odalys"), "valid XML"),
    "an entity": (lambda: with_parts(full(), word__header9_DOT_xml=DTD), "document type|valid XML"),
    "strict": (lambda: with_parts(full(), word__header9_DOT_xml=STRICT), "Strict"),
    "a bad embedded file": (lambda: with_parts(full(), word__x_DOT_json=b'{"Odalys'), "JSON"),
    "a zip": (lambda: package.pack({"Odalys.txt": b"x"}), "zip archive"),
    "not a package": (lambda: b"PK\x03\x04 Odalys", "damaged"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_read_completely_is_refused(case):
    make, message = BAD[case]
    with pytest.raises(DocumentError, match=message) as caught:
        read(make(), "a.docx")
    assert caught.value.exit_code == 3
    assert caught.value.place.startswith("a.docx")
    assert "Odalys" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("size", [10, 900_000])
def test_a_size_that_lies_is_damage(size):
    data = bytearray(saved(docx.Document()))
    for at in (m.start() for m in re.finditer(b"PK\x01\x02", data)):
        data[at + 24 : at + 28] = size.to_bytes(4, "little")
    with pytest.raises(DocumentError, match="damaged"):
        read(bytes(data), "a.docx")


def test_pictures_are_blanked_on_request():
    data = with_parts(full(), word__media__image1_DOT_png=PNG, word__media__image2_DOT_emf=b"Odalys")
    document = read(data, "a.docx", Reading(pictures="blank"))
    parts = all_bytes(document.render([]))
    assert parts["word/media/image1.png"] == parts["word/media/image2.emf"] != PNG
    assert "blank" in " ".join(document.remarks([]))
    assert read(document.render([]), "a.docx").text  # blanks are no reason to refuse


def test_a_file_may_be_rendered_twice():
    document = read(full(), "a.docx")
    first = redacted(document)
    assert redacted(document) == first
    assert read(document.render([]), "a.docx").text.count("Odalys") > 5


def test_a_page_break_stays_in_a_paragraph_written_anew():
    made = docx.Document()
    paragraph = made.add_paragraph("Odalys came.\nThen")
    paragraph.add_run().add_break(docx.enum.text.WD_BREAK.PAGE)
    paragraph.add_run("she left.")
    document = read(saved(made), "a.docx")
    block = document.blocks[0]
    body = all_bytes(document.render([Edit(block.start, block.end, "New words.")]))["word/document.xml"]
    assert body.count(b"<w:br") == body.count(b'<w:br w:type="page"') == 1


def test_moved_words_stray_words_comments_around_a_part_and_people_are_not_forgotten():
    body = (
        f"<w:hdr {WNS}><w:p><w:r><w:t>kept </w:t></w:r><w:moveFrom><w:r><w:t>moved Odalys</w:t></w:r>"
        "</w:moveFrom><w:r><w:t>words</w:t></w:r>stray Odalys</w:p></w:hdr>"
    )
    ns = 'xmlns:w15="http://schemas.microsoft.com/office/word/2012/wordml"'
    people = (
        f'<w15:people {ns}><w15:person w15:author="Odalys"><w15:presenceInfo w15:userId="o@example.com"/>'
        '</w15:person><w15:person w15:author="Tovin"/></w15:people>'
    )
    document = read(
        with_parts(
            saved(docx.Document()),
            word__header9_DOT_xml=body.encode(),
            word__people_DOT_xml=people.encode(),
            customXml__item9_DOT_xml=b"<!-- Odalys --><a/>",
        ),
        "a.docx",
    )
    found = words(document)
    assert "kept words" in found and "moved Odalys" in found and "stray Odalys" in found
    parts = all_bytes(redacted(document))
    assert not any(b"Odalys" in part or b"o@example" in part for part in parts.values())
    assert parts["word/people.xml"].count(b'w15:author="Author"') == 1
    assert parts["word/people.xml"].count(b"<w15:person ") == 1


def test_a_comment_in_a_paragraph_and_a_box_in_its_middle_are_read():
    box = "<w:txbxContent><w:p><w:r><w:t>box Odalys</w:t></w:r></w:p></w:txbxContent>"
    header = (
        f'<w:hdr {WNS}><w:p><!-- note by Odalys --><w:r><w:t>outer </w:t></w:r><w:r>{box}</w:r>'
        "<w:r><w:t>words</w:t></w:r></w:p></w:hdr>"
    )
    document = read(with_parts(saved(docx.Document()), word__header9_DOT_xml=header.encode()), "a.docx")
    assert words(document) == ["outer words", "note by Odalys", "box Odalys"] + words(document)[3:]
    assert b"Odalys" not in all_bytes(redacted(document))["word/header9.xml"]
