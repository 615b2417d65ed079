"""Zip packages (Word files and their like): opened with limits, written without fingerprints."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping

from dpredact.errors import DocumentError

MOST_PARTS = 4000
LARGEST_PART = 64 * 2**20  # bytes after unpacking
LARGEST_PACKAGE = 256 * 2**20
LARGEST_RATIO = 200  # unpacked to packed; real documents stay below 100
SMALL = 2**20  # below this size the ratio does not matter
OPEN_AND_SAVE = "open it in a word processor, save it again as .docx, and try again"


def unpack(data: bytes) -> dict[str, bytes]:
    """Every part of the package, in its order.

    Raises DocumentError for damage, a password, a zip bomb, or two parts with one name (one of
    them would be hidden from us and shown by another program).
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as package:
            return _parts(package)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError):
        raise DocumentError("the file is damaged", next_step=OPEN_AND_SAVE) from None


def _parts(package: zipfile.ZipFile) -> dict[str, bytes]:
    members = [info for info in package.infolist() if not info.is_dir()]
    if len(members) > MOST_PARTS:
        raise DocumentError(f"the package has more than {MOST_PARTS} parts")
    if any(info.flag_bits & 0x1 for info in members):
        raise DocumentError("the file is encrypted", next_step="remove the password first")
    if len({info.filename.lower() for info in members}) < len(members):
        raise DocumentError("two parts of the package have one name", next_step=OPEN_AND_SAVE)
    total = 0
    parts: dict[str, bytes] = {}
    for info in members:
        total += info.file_size
        bomb = info.file_size > SMALL and info.file_size > LARGEST_RATIO * max(info.compress_size, 1)
        if bomb or info.file_size > LARGEST_PART or total > LARGEST_PACKAGE:
            raise DocumentError(
                "the package unpacks to far more than a document holds (a zip bomb)",
                next_step="leave the file out",
            )
        with package.open(info) as part:
            # the size in the directory may lie: never read more than it says
            content = part.read(info.file_size + 1)
        if len(content) != info.file_size:
            raise DocumentError("the file is damaged", next_step=OPEN_AND_SAVE)
        parts[info.filename] = content
    return parts


def pack(parts: Mapping[str, bytes]) -> bytes:
    """A package of `parts` in their order: no time stamps, no comments, no extra fields."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as package:
        for name, content in parts.items():
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            package.writestr(info, content)
    return out.getvalue()
