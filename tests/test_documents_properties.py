"""Properties of every format: nothing changes without edits, edits change only their words.

The exact slow twin of `render` is `replaced` on the text: a file with edits, read again, must
say what the text with the same edits says.
"""

import csv
import io
import json
from email.message import EmailMessage

import docx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpredact.documents import Edit, Kind, read
from dpredact.documents.html_scan import tokens
from dpredact.documents.interface import replaced

QUICK = settings(max_examples=120, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
# Letters, marks, emoji and whatever a format might trip over.
TEXT = st.text(
    st.sampled_from("abc é\u0301😀👩\u200d👧漢\n\r\t \"'<>&;,|=%\\/{}[]()#-_*`~:.@?!01\u2028\xa0Å"), max_size=60
)
LINES = st.lists(TEXT, max_size=6)
WORD = st.text(st.sampled_from("abcXYZ é😀漢[]&<\"',;"), max_size=8)
ASCII = st.text(st.sampled_from("abc <>&;\"'=/!-[]%#x20\n"), max_size=80)


@st.composite
def edits_for(draw, document, new=WORD):
    """Up to three edits, each inside one block, sorted and disjoint."""
    chosen = draw(st.lists(st.sampled_from(document.blocks), unique=True, max_size=3)) if document.blocks else []
    edits = []
    for block in sorted(chosen, key=lambda b: b.start):
        start = draw(st.integers(block.start, block.end - 1))
        end = draw(st.integers(start + 1, block.end))
        edits.append(Edit(start, end, draw(new)))
    return edits


def check_shape(document):
    """Blocks are sorted, disjoint, inside, and never begin or end in white space."""
    at = 0
    for block in document.blocks:
        assert at <= block.start < block.end <= len(document.text)
        at = block.end
        assert document.text[block.start : block.end].strip() == document.text[block.start : block.end]


def words(text):
    """The text without white space and quotation marks: a line break between pieces stays when
    words go, and marks around a cell depend on its words."""
    return "".join(text.replace('"', "").split())


@QUICK
@given(TEXT, st.sampled_from(["a.txt", "a.md", "a.yaml"]), st.data())
def test_text_files(text, name, data):
    raw = text.encode("utf-8")
    document = read(raw, name)
    check_shape(document)
    assert document.text == text and document.render([]) == raw
    edits = data.draw(edits_for(document))
    assert document.render(edits) == replaced(text, edits).encode("utf-8")


@QUICK
@given(TEXT, st.sampled_from(["utf-8-sig", "utf-16", "utf-16-le", "utf-32"]))
def test_encodings(text, encoding):
    text = f"Odalys came on Monday, and then left again on Friday, as was agreed. {text[:40]}"
    raw = text.encode(encoding)
    document = read(raw, "a.txt")
    assert document.text == text and document.render([]) == raw
    assert document.render([Edit(0, 6, "é")]) == ("é" + text[6:]).encode(encoding)


@QUICK
@given(
    st.lists(st.lists(TEXT, min_size=2, max_size=3), min_size=2, max_size=4),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from(["\n", "\r\n"]),
    st.data(),
)
def test_tables(rows, delimiter, quoting, line_end, data):
    rows = [[cell.replace("\0", "") for cell in (row * 2)[:2]] for row in rows]
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator=line_end).writerows(rows)
    raw = out.getvalue().encode()
    head = f"sep={delimiter}\r\n".encode()
    document = read(head + raw, "a.csv")
    check_shape(document)
    assert document.render([]) == head + raw
    edits = data.draw(edits_for(document))
    again = document.render(edits).decode().partition("\n")[2]
    new_rows = list(csv.reader(io.StringIO(again, newline=""), delimiter=delimiter))
    want = list(csv.reader(io.StringIO(raw.decode(), newline=""), delimiter=delimiter))
    for edit in reversed(edits):
        block = next(b for b in document.blocks if b.start <= edit.start and edit.end <= b.end)
        row, column = (int(word.split()[1]) - 1 for word in block.where.split(", "))
        cell = want[row][column]
        inside = cell.index(document.text[block.start : block.end])
        shift = edit.start - block.start + inside
        want[row][column] = cell[:shift] + edit.text + cell[shift + edit.end - edit.start :]
    assert new_rows == want


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-10**12, 10**12) | TEXT | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@QUICK
@given(JSON, st.booleans(), st.sampled_from([None, 1]), st.data())
def test_json(value, ascii_only, indent, data):
    raw = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    document = read(raw, "a.json")
    check_shape(document)
    assert document.render([]) == raw
    edits = data.draw(edits_for(document))
    out = document.render(edits)
    json.loads(out)
    if all(edit.text.strip() for edit in edits) and not any("key" in b.where for b in document.blocks):
        assert words(read(out, "a.json").text) == words(replaced(document.text, edits))


@QUICK
@given(ASCII, st.data())
def test_any_string_is_html(source, data):
    document = read(source.encode(), "a.html")
    check_shape(document)
    assert document.render([]) == source.encode()
    # the tokens cover the source in order, without a gap a word could hide in
    at = 0
    for token in tokens(source):
        assert token.at >= at
        at = token.to
    edits = data.draw(edits_for(document, new=st.text(st.sampled_from("abc &<>\"'"), max_size=6)))
    document.render(edits)


MARKUP = st.lists(
    st.sampled_from([
        "<p>", "</p>", "<b>", "</b>", "<br>", "<td>", "&eacute;", "&amp;", "&", "<", " ", "\n", "word",
        "Odalys", "😀", "<a href='/x%20y?a=1&amp;b=2'>", "</a>", "<img alt=\"a &lt; b\">", "<!-- note -->",
    ]),
    max_size=25,
)  # fmt: skip


@QUICK
@given(MARKUP, st.data())
def test_html_read_again_says_the_edited_words(parts, data):
    raw = "".join(parts).encode()
    document = read(raw, "a.html")
    check_shape(document)
    edits = data.draw(edits_for(document, new=st.text(st.sampled_from("abcé&<\"'😀"), min_size=1, max_size=6)))
    again = read(document.render(edits), "a.html")
    assert words(again.text) == words(replaced(document.text, edits))


@QUICK
@given(WORD.filter(str.strip), st.text(st.sampled_from("ab é\n漢.="), max_size=200), st.booleans(), st.data())
def test_mails(subject, body, eight_bit, data):
    message = EmailMessage()
    message["Subject"] = f"{subject.strip()} Odalys"
    message.set_content(body, cte="base64" if eight_bit else "quoted-printable")
    message.add_attachment(body.encode(), maintype="text", subtype="csv", filename="x.csv")
    raw = message.as_bytes()
    document = read(raw, "a.eml")
    check_shape(document)
    assert document.render([]) == raw
    new = st.text(st.sampled_from("xqzé漢"), min_size=1, max_size=6)
    edits = data.draw(edits_for(document, new=new))
    again = read(document.render(edits), "a.eml")
    assert words(again.text) == words(replaced(document.text, edits))


@settings(max_examples=12, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.lists(WORD.filter(str.strip), min_size=1, max_size=4), min_size=1, max_size=3), st.data())
def test_word_files(paragraphs, data):
    made = docx.Document()
    for runs in paragraphs:
        paragraph = made.add_paragraph()
        for number, run in enumerate(runs):
            paragraph.add_run(run).bold = bool(number % 2)
    out = io.BytesIO()
    made.save(out)
    document = read(out.getvalue(), "a.docx")
    check_shape(document)
    body = [b for b in document.blocks if b.kind is Kind.PROSE]
    assert [document.text[b.start : b.end] for b in body] == [
        "".join(runs).strip() for runs in paragraphs
    ]  # fmt: skip
    edits = [e for e in data.draw(edits_for(document)) if any(b.start <= e.start < b.end for b in body)]
    want = [
        replaced(document.text, edits)
        and replaced(
            document.text[b.start : b.end],
            [Edit(e.start - b.start, e.end - b.start, e.text) for e in edits if b.start <= e.start < b.end],
        )
        for b in body
    ]  # fmt: skip
    again = [p.text.strip() for p in docx.Document(io.BytesIO(document.render(edits))).paragraphs]
    assert again == [text.strip() for text in want]
