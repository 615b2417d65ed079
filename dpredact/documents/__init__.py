"""Files to documents and back. `read` and `open_path` are the doors; formats sit behind them."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable
from pathlib import Path, PurePath

from dpredact.documents import picture
from dpredact.documents.again import undrawn, undrawn_at
from dpredact.documents.interface import Block, Document, Edit, Kind, Reading
from dpredact.errors import DocumentError

__all__ = ["LARGEST", "Block", "Document", "Edit", "Kind", "Reading", "open_path", "read", "undrawn", "undrawn_at"]

LARGEST = 64 * 2**20  # bytes; a tagger needs the whole text in memory
LEAVE_OUT = "leave the file out, or convert it to a format that dpredact reads"

# First bytes of formats whose words a text reader would not see, or would see garbled.
UNREADABLE = (
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old or encrypted Office file",
     "remove the password, or save it as .docx"),
    (b"{\\rtf", "a rich text file", "save it as .docx"),
    (b"\x1f\x8b", "compressed data", "unpack it first"),
    (b"BZh", "compressed data", "unpack it first"),
    (b"\xfd7zXZ", "compressed data", "unpack it first"),
    (b"7z\xbc\xaf", "compressed data", "unpack it first"),
    (b"Rar!", "compressed data", "unpack it first"),
    (b"\x7fELF", "a program", LEAVE_OUT),
)  # fmt: skip


def read(data: bytes, name: str, how: Reading | None = None) -> Document:
    """The document in `data`; `name` (with its suffix) tells the format.

    Raises DocumentError for anything that cannot be read completely.
    """
    how = how or Reading()
    name = PurePath(name.replace("\\", "/")).name or "document.txt"
    if how.depth > DEEPEST:
        raise DocumentError(
            f"files are embedded in each other more than {DEEPEST} deep",
            next_step="take the inner files out and give them by themselves",
            place=name,
        )
    if len(data) > LARGEST:
        raise DocumentError(
            f"the file has more than {LARGEST >> 20} MiB",
            next_step="split it into smaller files",
            place=name,
        )
    for magic, what, step in UNREADABLE:
        if data.startswith(magic):
            raise DocumentError(f"this is {what}", next_step=step, place=name)
    if PurePath(name).suffix.lower() == ".mbox":
        raise DocumentError(
            "this is a box of many mails", next_step="save each mail as .eml", place=name
        )
    reader = _reader(data, name)
    try:
        return reader(data, name, how)
    except DocumentError as error:
        if error.place.startswith(name):
            raise
        place = f"{name}, {error.place}" if error.place else name
        raise type(error)(error.message, next_step=error.next_step, place=place) from None
    except (MemoryError, RecursionError):
        raise DocumentError(
            "the file is too large or too deeply nested to read", place=name
        ) from None


def open_path(path: str | os.PathLike[str], how: Reading | None = None) -> Document:
    """The document in the file at `path`. Raises DocumentError, also for an unreadable file."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise DocumentError(f"cannot be opened: {reason}", place=path.name) from None
    return read(data, path.name, how)


Reader = Callable[[bytes, str, Reading], Document]
DEEPEST = 8  # files in files in files
XML_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*<\?xml\s")
MODULE_OF = {
    "table": ".csv .tsv .tab",
    "tree": ".json .jsonl .ndjson .jsonlines .geojson .ipynb .webmanifest",
    "markup": ".html .htm .xhtml .xml .svg .rss .atom .kml .gpx",
    "mail": ".eml .mht .mhtml",
    "office": ".docx .docm .dotx .dotm",
    "pdf": ".pdf",
}


def _reader(data: bytes, name: str) -> Reader:
    """The reader for a file: by its first bytes where they are certain, else by suffix."""
    suffix = PurePath(name).suffix.lower()
    module = next((m for m, suffixes in MODULE_OF.items() if suffix in suffixes.split()), "plain")
    if data.startswith(b"PK\x03\x04"):
        module = "office"
    elif module == "plain" and XML_START.match(data):
        module = "markup"
    elif picture.MAGIC.match(data):
        module = "picture"
    elif data[:1024].lstrip().startswith(b"%PDF-"):
        module = "pdf"
    return importlib.import_module(f"dpredact.documents.{module}").read
