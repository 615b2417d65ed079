"""Pictures: nobody reads their words, so they refuse a file, or are blanked on request."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence

from dpredact.documents.interface import Document, Edit, Reading
from dpredact.errors import DocumentError

MAGIC = re.compile(rb"\x89PNG|\xff\xd8\xff|GIF8|BM.{4}\0\0\0\0|II\*\0|MM\0\*|RIFF.{4}WEBP", re.DOTALL)
# One white dot as PNG; programs know a picture by its first bytes, not by its name.
BLANK = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2aQAAAABJRU5ErkJggg=="
)
BLANKED = "pictures are replaced by blank ones: their words cannot be read"


class BlankPicture(Document):
    """A picture that will be written as a white dot."""

    media_type = "image/png"
    text = ""
    blocks = ()

    def __init__(self, name: str) -> None:
        self.name = name

    def render(self, edits: Sequence[Edit]) -> bytes:
        return BLANK

    def remarks(self, edits: Sequence[Edit]) -> tuple[str, ...]:
        return (BLANKED,)


def read(data: bytes, name: str, how: Reading, place: str = "") -> Document:
    """A blank for a picture inside another file. Raises DocumentError unless that was asked for,
    or the picture is such a blank already (a written file is read again)."""
    if (how.pictures == "blank" or data == BLANK) and how.depth + bool(place):
        return BlankPicture(name)
    raise DocumentError(
        "this is a picture; its words cannot be read"
        if not place
        else "the file holds a picture whose words cannot be read",
        next_step="take pictures out first, or ask for blank ones" if place or how.depth
        else "leave the file out",
        place=place,
    )
