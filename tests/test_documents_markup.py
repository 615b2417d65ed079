"""HTML and XML: words and attribute values change, tags keep their bytes."""

import re

import pytest

from dpredact.documents import Edit, Kind, Reading, read
from dpredact.errors import DocumentError


def replace(document, words):
    found = re.finditer("|".join(map(re.escape, words)), document.text)
    return document.render([Edit(m.start(), m.end(), words[m.group()]) for m in found]).decode()


def words(document, kind=None):
    return [document.text[b.start : b.end] for b in document.blocks if kind in (None, b.kind)]


CASE = (
    b"<p>A&E note: <b>Odalys</b>&nbsp;Brennwald<br>seen by "
    b'<a href="mailto:tovin@example.com">Dr Maraq</a></p>'
)


def test_a_name_over_a_tag_border_is_one_name_and_the_tags_stay():
    document = read(CASE, "a.html")
    assert words(document) == [
        "A&E note: Odalys\xa0Brennwald\nseen by Dr Maraq", "mailto:tovin@example.com",
    ]  # fmt: skip
    out = replace(document, {"Odalys\xa0Brennwald": "[PERSON]", "Maraq": "[PERSON]",
                             "tovin@example.com": "[EMAIL]"})  # fmt: skip
    assert out == (
        "<p>A&E note: <b>[PERSON]</b><br>seen by "
        '<a href="mailto:[EMAIL]">Dr [PERSON]</a></p>'
    )
    assert document.render([]) == CASE


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (b"<p>&eacute;&#233;&#xE9; &lt;b&gt; &amp;amp;</p>", "ééé <b> &amp;"),
        (b"<p>3 < 4 & 5 <6</p>", "3 < 4 & 5 <6"),
        (b"<p>&notit; &copy2</p>", "¬it; ©2"),
        (b"<p>AT&T &unknown; &</p>", "AT&T &unknown; &"),
    ],
)
def test_entities_are_read_and_what_is_none_stays(source, text):
    document = read(source, "a.html")
    assert words(document) == [text]
    assert document.render([]) == source


def test_an_edit_next_to_an_entity_leaves_it_and_new_text_is_escaped():
    document = read(b"<p>&eacute;Odalys&amp;x</p>", "a.html")
    assert replace(document, {"Odalys": "<A&B>"}) == "<p>&eacute;&lt;A&amp;B&gt;&amp;x</p>"


def test_an_edit_through_half_of_an_entity_keeps_the_other_half():
    document = read(b"<p>x&notit;y</p>", "a.html")  # the entity reads as four characters
    assert document.text.startswith("x¬it;y")
    assert document.render([Edit(2, 3, "I")]) == "<p>x¬It;y</p>".encode()


def test_attributes_scripts_styles_and_comments_are_searched():
    data = (
        b"<!-- by Odalys --><title>Odalys</title><script>var a='Odalys<b>';</script>"
        b"<style>/* Odalys */</style><img alt=Odalys title='Odalys &amp; co' data-x=\"Odalys\">"
        b'<meta name="author" content="Odalys"><input value="Odalys">'
        b"<textarea>Odalys</textarea><a href='/?q=Odalys%20Br%C3%BCn&amp;x=1'>x</a>"
    )
    document = read(data, "a.html")
    assert document.text.count("Odalys") == 11
    assert "Odalys Brün&x=1" in document.text
    out = replace(document, {"Odalys": "[P]"})
    assert out == data.decode().replace("Odalys", "[P]")
    assert "Odalys" not in read(out.encode(), "a.html").everything()
    assert all(b.kind is Kind.VALUE for b in document.blocks if "<b>" in document.text[b.start : b.end])


def test_attribute_values_are_quoted_when_they_must_be():
    document = read(b"<img alt=Odalys title='x' src=\"/Odalys\">", "a.html")
    assert replace(document, {"Odalys": 'a "b"', "x": "it's"}) == (
        "<img alt=\"a &quot;b&quot;\" title='it&#39;s' src=\"/a%20%22b%22\">"
    )


def test_what_no_edit_reaches_is_still_found():
    document = read(b'<p class="odalys" data-tovin>words here</p><!ELEMENT maraq>', "a.html")
    for word in ("odalys", "tovin", "maraq"):
        assert word in document.unblocked()
        assert word not in document.text


def test_paragraphs_and_headings_are_prose_and_cells_and_code_are_values():
    data = (
        b"<h1>Short</h1><div>Loose <p>One<p>Two<ul><li>Item</ul><table><tr><td>Cell<td>12</table>"
        b"<pre>code here</pre></div>"
    )
    document = read(data, "a.html")
    assert words(document, Kind.PROSE) == ["Short", "Loose", "One", "Two", "Item"]
    assert words(document, Kind.VALUE) == ["Cell", "12", "code here"]


def test_a_whole_paragraph_goes_where_most_of_its_words_were():
    data = b"<p><b>Note:</b> Odalys came on Monday <i>early</i>.</p>"
    document = read(data, "a.html")
    block = document.blocks[0]
    out = document.render([Edit(block.start, block.end, "New words.")])
    assert out == b"<p><b></b>New words.<i></i></p>"


@pytest.mark.parametrize(
    "source",
    [
        b"<p>open <b>Odalys", b"<p <b>Odalys</b>", b"<a href='x>Odalys", b"<!-- Odalys",
        b"<script>Odalys", b"</p>Odalys</x>", b"<>Odalys<", b"<a b=\"c\"d='e'f=g/>Odalys",
        b"<textarea>Odalys", b"<a =x \"'>Odalys", b"<![CDATA[Odalys]]>",
    ],
)  # fmt: skip
def test_broken_html_keeps_its_bytes_and_hides_nothing(source):
    document = read(source, "a.html")
    assert document.render([]) == source
    assert "Odalys" in document.everything()


def test_a_character_that_the_encoding_cannot_hold_becomes_a_reference():
    data = '<meta charset="cp1252"><p>Zoë Odalys</p>'.encode("cp1252")
    document = read(data, "a.html")
    at = document.text.index("Odalys")
    out = document.render([Edit(at, at + 6, "漢")])
    assert out == data.replace(b"Odalys", b"&#28450;")
    assert document.remarks([Edit(at, at + 6, "漢")]) == ()


def test_xml_elements_are_apart_and_cdata_is_read_plainly():
    data = b'<?xml version="1.0"?><r><name>Odalys</name><city a="Bern">Bern</city><![CDATA[A&amp;B]]></r>'
    document = read(data, "a.xml")
    assert words(document) == ["Odalys", "Bern", "Bern", "A&amp;B"]
    assert document.render([]) == data


@pytest.mark.parametrize(
    ("source", "new", "want"),
    [
        (b"<p>x <1 y</p>", "b", "<p>x &lt;b y</p>"),
        (b"<p>x &1 y</p>", "lt;", "<p>x &amp;lt; y</p>"),
        (b"<a title='&1'>", "lt;", "<a title='&amp;lt;'>"),
        (b"<a href='/&1'>", "lt=2", "<a href='/&lt=2'>"),
    ],
)
def test_new_words_never_become_markup_with_what_stands_before_them(source, new, want):
    document = read(source, "a.html")
    at = document.text.index("1")
    out = document.render([Edit(at, at + 1, new)])
    assert out.decode() == want
    assert new in read(out, "a.html").text


PICTURE = b"<p>Odalys</p><img src='data:image/png;base64,aGVsbG8='><style>@font-face{src:url(data:font/woff2;base64,AAAA)}</style>"


def test_files_inside_addresses_are_refused_and_pictures_blanked_on_request():
    for data in (PICTURE, b"<a href='data:text/html;base64,T2RhbHlz'>x</a>",
                 b"<script src=\"data:;base64,T2RhbHlz\"></script>"):  # fmt: skip
        with pytest.raises(DocumentError) as caught:
            read(data, "a.html")
        assert "line 1" in caught.value.place
    document = read(PICTURE, "a.html", Reading(pictures="blank"))
    out = document.render([Edit(0, 6, "[P]")])
    assert out.startswith(b"<p>[P]</p><img src='data:image/png;base64,iVBOR") and b"woff2;base64,AAAA" in out
    assert read(out, "a.html").render([]) == out
    assert b"aGVsbG8" not in out and "blank" in document.remarks([])[0]
    with pytest.raises(DocumentError):
        read(b"<a href='data:text/html;base64,T2RhbHlz'>x</a>", "a.html", Reading(pictures="blank"))


def test_xml_is_known_by_its_first_line():
    document = read(b"<?xml version='1.0'?><a><b>Oda&#108;ys</b></a>", "a.fodt")
    assert words(document) == ["Odalys"]


def test_a_percent_sign_that_an_entity_spells_is_not_read_twice():
    data = b"<a href='/&#37;41-%42 Odalys'>x</a>"
    document = read(data, "a.html")
    assert "/%41-B Odalys" in document.text
    assert replace(document, {"Odalys": "O", "B": "C"}) == "<a href='/&#37;41-C O'>x</a>"
