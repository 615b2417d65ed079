"""PDF, read only: the words come out as plain text, the layout and everything else stay behind.

A page without words but with pictures is a scan: its words cannot be read, so the file is
refused. Words in pictures on pages with text are not read and do not reach the output.
"""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Sequence
from typing import Any

from dpredact.documents import encoding as enc
from dpredact.documents.interface import Edit, Kind, Reading
from dpredact.documents.plain import PlainDocument, paragraphs
from dpredact.errors import DocumentError

NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
BROKEN_WORD = re.compile(r"(?<=[a-zß-ÿ])-\n(?=[a-zß-ÿ])")
UNKNOWN_LETTERS = 0.02  # largest share of characters whose font does not say which letter they are
REMARK = "the output is plain text: pictures, layout, links and attachments of the PDF are left out"


class PdfDocument(PlainDocument):
    """The text of a PDF. Written out, it is a text file."""

    @property
    def output_name(self) -> str:
        return f"{self.name}.txt"

    def remarks(self, edits: Sequence[Edit]) -> tuple[str, ...]:
        return (REMARK,)


def read(data: bytes, name: str, how: Reading) -> PdfDocument:
    """The pages' text, then comments and form fields.

    Raises DocumentError for a password, a scan, damage, and fonts without known letters.
    """
    from pypdf.errors import PyPdfError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # its warnings may quote the file
    try:
        text = _text(data)
    except DocumentError:
        raise
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError,
            NotImplementedError, OSError, RuntimeError, AssertionError, ArithmeticError):  # fmt: skip
        raise DocumentError(
            "the PDF is damaged or of a kind that cannot be read",
            next_step="export it as .docx or .txt",
        ) from None
    blocks = tuple(paragraphs(text, Kind.PROSE))
    return PdfDocument(name, "text/plain", enc.Decoded(text, "utf-8"), blocks)


def _text(data: bytes) -> str:
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(data), strict=False)
    # an empty user password only forbids printing or copying: anyone can read such a file
    if reader.is_encrypted and not reader.decrypt(""):
        raise DocumentError("the PDF is encrypted", next_step="remove the password first")
    pages = []
    for number, page in enumerate(reader.pages, start=1):
        text = _clean(page.extract_text() or "")
        if not text.strip() and _has_pictures(page):
            raise DocumentError(
                "the page is a picture (a scan); its words cannot be read",
                next_step="run it through text recognition (OCR) first",
                place=f"page {number}",
            )
        if text.count("\ufffd") > UNKNOWN_LETTERS * len(text):
            raise DocumentError(
                "the fonts do not say which letters they draw",
                next_step="export the source document as .docx or .txt",
                place=f"page {number}",
            )
        pages.append("\n".join([text, *_notes(page)]).rstrip())
    fields = reader.get_form_text_fields() or {}
    pages += [_clean(str(value)) for value in fields.values() if value]
    body = "\n\n".join(page for page in pages if page.strip())
    return f"{body}\n" if body else ""


def _clean(text: str) -> str:
    text = NOT_TEXT.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))
    return BROKEN_WORD.sub("", text)


def _has_pictures(page: Any) -> bool:
    """Does the page draw images or forms (in which scans hide), or vector paths as letters?"""
    resources = page.get("/Resources")
    drawn = resources.get_object().get("/XObject") if resources is not None else None
    if drawn is not None and len(drawn.get_object()) > 0:
        return True
    contents = page.get_contents()
    return contents is not None and len(contents.get_data().split()) > 200


def _notes(page: Any) -> list[str]:
    """The comments that readers have put on the page."""
    found = []
    for note in page.get("/Annots") or []:
        contents = note.get_object().get("/Contents")
        if contents:
            found.append(f"\n{_clean(str(contents))}")
    return found
