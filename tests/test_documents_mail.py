"""Mails: headers, bodies and attachments are read by the reader for their format."""

import base64
import email
import email.policy
import io
import re
from email.message import EmailMessage

import pypdf
import pytest

from dpredact.documents import Edit, Kind, Reading, read
from dpredact.errors import DocumentError

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


def mail(**headers):
    message = EmailMessage()
    message["From"] = "Odalys Brünn <odalys@example.com>"
    message["To"] = "tovin@example.com"
    message["Subject"] = "Über Odalys and a long day with so many words that the line is folded, Odalys"
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    message.set_content("Dear Tovin,\n\nOdalys came. Grüße " + "x" * 100 + "\n")
    return message


def everything():
    message = mail()
    message.add_alternative("<p>Dear <b>Oda</b>lys</p>", subtype="html")
    message.add_attachment("Name,Note\nOdalys,é\n".encode(), maintype="text", subtype="csv",
                           filename="Odalys Brünn.csv")  # fmt: skip
    message.add_attachment(b"plain Odalys\n", maintype="application", subtype="octet-stream",
                           filename="odalys.txt")  # fmt: skip
    inner = EmailMessage()
    inner["Subject"] = "inner Odalys"
    inner.set_content("inner body of Odalys\n")
    message.add_attachment(inner)
    return message


def replace(document, words):
    found = re.finditer("|".join(map(re.escape, words)), document.text)
    return document.render([Edit(m.start(), m.end(), words[m.group()]) for m in found])


def parsed(data):
    return email.message_from_bytes(data, policy=email.policy.default)


@pytest.mark.parametrize("policy", [email.policy.SMTP, email.policy.default, email.policy.SMTPUTF8])
def test_a_mail_without_edits_keeps_every_byte(policy):
    data = everything().as_bytes(policy=policy)
    assert read(data, "a.eml").render([]) == data


@pytest.mark.parametrize("policy", [email.policy.SMTP, email.policy.default])
@pytest.mark.parametrize("new", ["[PERSON]", "Zoë"])
def test_a_name_goes_from_headers_bodies_attachments_and_file_names(policy, new):
    document = read(everything().as_bytes(policy=policy), "a.eml")
    out = replace(document, {"Odalys": new, "odalys": "mail"})
    again = read(out, "a.eml")
    assert "odalys" not in again.everything().lower()
    message = parsed(out)
    assert message["Subject"].startswith(f"Über {new} and a long day")
    assert message["From"].addresses[0].addr_spec == "mail@example.com"
    assert message["From"].addresses[0].display_name == f"{new} Brünn"
    plain, html, table, other, inner = _leaves(message)
    assert f"{new} came. Grüße xxx" in plain.get_content()
    assert html.get_content().strip() == f"<p>Dear <b>{new}</b></p>"
    assert table.get_content() == f"Name,Note\n{new},é\n" and table.get_filename() == f"{new} Brünn.csv"
    assert other.get_content().decode() == f"plain {new}\n"
    assert inner.get_content().strip() == f"inner body of {new}"


def _leaves(message):
    if message.is_multipart():
        return [leaf for part in message.get_payload() for leaf in _leaves(part)]
    return [message]


def test_headers_are_values_and_bodies_are_prose():
    document = read(mail().as_bytes(), "a.eml")
    kinds = {document.text[b.start : b.end]: b.kind for b in document.blocks}
    assert kinds["Dear Tovin,"] is Kind.PROSE
    assert kinds["tovin@example.com"] is Kind.VALUE
    assert "From: Odalys Brünn <odalys@example.com>" in document.text


def test_other_parts_keep_their_bytes():
    data = everything().as_bytes()
    document = read(data, "a.eml")
    at = document.text.index("inner body")
    out = document.render([Edit(at, at + 5, "outer")])
    assert out == data.replace(b"inner body", b"outer body")


def test_new_text_outside_the_charset_changes_charset_and_transfer_encoding():
    data = b"From: a@example.com\nContent-Type: text/plain; charset=us-ascii\n\nOdalys came.\n"
    document = read(data, "a.eml")
    out = replace(document, {"Odalys": "漢"})
    assert parsed(out).get_content() == "漢 came.\n"
    assert parsed(out)["From"] == "a@example.com"
    assert out.isascii()
    bare = read(b"From: a@example.com\n\nOdalys came.\n", "a.eml")
    assert parsed(replace(bare, {"Odalys": "漢"})).get_content() == "漢 came.\n"
    legacy = (
        b"From: a@example.com\nContent-Type: text/plain; charset=iso-8859-1\n"
        b"Content-Transfer-Encoding: 8bit\n\nOdalys \xe9t\xe9.\n"
    )
    assert parsed(replace(read(legacy, "a.eml"), {"Odalys": "漢"})).get_content() == "漢 été.\n"
    assert replace(read(legacy, "a.eml"), {"Odalys": "X"}) == legacy.replace(b"Odalys", b"X")


def test_new_text_cannot_add_a_header():
    out = replace(read(mail().as_bytes(), "a.eml"), {"tovin": "x\r\nBcc: evil@example.org\r\n\r\n"})
    assert parsed(out)["Bcc"] is None


def test_raw_eight_bit_headers_are_read():
    document = read("Subject: Zoë Brünn\n\nbody\n".encode(), "a.eml")
    assert "Zoë Brünn" in document.text
    assert document.render([Edit(document.text.index("ë"), document.text.index("ë") + 1, "e")]) == (
        "Subject: Zoe Brünn\n\nbody\n".encode()
    )


def attachment(content, name, maintype="application", subtype="octet-stream"):
    message = mail()
    message.add_attachment(content, maintype=maintype, subtype=subtype, filename=name)
    return message.as_bytes()


def blank_pdf():
    writer, out = pypdf.PdfWriter(), io.BytesIO()
    writer.add_blank_page(9, 9)
    writer.write(out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (attachment(PNG, "odalys.png", "image", "png"), "picture"),
        (attachment(b"\x00\x01\x02", "a.bin"), "binary"),
        (attachment(b"%PDF-1.4 nothing", "a.pdf", "application", "pdf"), "PDF"),
        (attachment(blank_pdf(), "a.pdf", "application", "pdf"), "not written back"),
        (b"no header here\n", "not a mail"),
        (b"Content-Type: multipart/mixed\n\nx", "boundary"),
        (b"Content-Type: multipart/mixed; boundary=b\n\nx", "no part"),
        (b"Content-Transfer-Encoding: base64\n\n####", "base64"),
        (b"Content-Transfer-Encoding: x-uuencode\n\nx", "transfer encoding"),
        (b"Content-Type: application/pkcs7-mime\n\nx", "encrypted"),
        (b"Content-Type: text/plain; charset=utf-8\n\n\xff", "utf-8"),
    ],
)
def test_a_part_that_cannot_be_read_refuses_the_mail(data, words):
    with pytest.raises(DocumentError, match=words) as caught:
        read(data, "a.eml")
    assert "odalys" not in str(caught.value).lower()


def test_pictures_are_blanked_on_request():
    document = read(attachment(PNG, "x.png", "image", "png"), "a.eml", Reading(pictures="blank"))
    picture = _leaves(parsed(document.render([])))[-1].get_content()
    assert picture != PNG and picture.startswith(b"\x89PNG")
    assert "blank" in document.remarks([])[0]
    assert read(document.render([]), "a.eml").render([]) == document.render([])


def test_mails_nested_twenty_deep_are_refused():
    data = b"Subject: innermost\n\nOdalys\n"
    for _ in range(20):
        data = (b"Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n"
                + base64.encodebytes(data))  # fmt: skip
    with pytest.raises(DocumentError, match="deep"):
        read(data, "a.eml")


def test_what_no_edit_reaches_is_still_found():
    data = b"Subject: x\nContent-Type: text/plain; odalys=1\n\nbody\n"
    assert "odalys" in read(data, "a.eml").unblocked()


@pytest.mark.parametrize(
    ("header", "words", "want"),
    [
        ("=?utf-8?q?Zo=C3=AB?= Odalys", {"Odalys": "Müll"}, "Zoë Müll"),
        ("Odalys =?utf-8?q?Zo=C3=AB?= Tovin", {"Odalys": "é", "Tovin": "ü"}, "é Zoë ü"),
        ("Odalys Tovin x", {"Odalys": "é", "Tovin": "ü"}, "é ü x"),
        ("Odalys's Tovin", {"Odalys": "Zoë", "Tovin": "T"}, "Zoë's T"),
        ("=?utf-8?q?Zo=C3=AB_Odalys?= =?utf-8?b?w6k=?= x", {"Odalys": "O", "é": "e"}, "Zoë Oe x"),
        ("Odalys at\r\n Tovin", {"Odalys": "é", "Tovin": "x"}, "é at x"),
    ],
)
def test_encoded_words_keep_the_space_between_them(header, words, want):
    document = read(f"Subject: {header}\r\n\r\nx\r\n".encode(), "a.eml")
    out = replace(document, words)
    assert parsed(out)["Subject"] == want
    assert want in read(out, "a.eml").text.replace("\r\n", "")
