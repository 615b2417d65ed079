"""Bytes to text and back, without a loss: the one place that decides on an encoding.

Order: byte order mark, what the file declares (HTML, XML, mail), UTF-8, UTF-16 without a
mark (by its zero bytes), then charset-normalizer above a confidence. Anything else is
refused: a wrongly guessed character hides a name from every tagger, and `errors="replace"`
would write a damaged file.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field

from dpredact.errors import DocumentError

# Longest marks first: the UTF-32 mark begins with the UTF-16 one.
MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Eight-bit encodings worth guessing, the commonest first; ties go to the earlier one.
GUESSED = ("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1257", "koi8_r")
LEAST_COHERENCE = 0.4  # share of letters that fit a known language; 0 when none fits
MOST_CHAOS = 0.05  # share of unlikely neighbours ("mess")
NEARLY = 0.1  # guesses this close in coherence count as equal
# A foreign capital inside a word ("MŸller") is the sign of a wrong code page.
ODD_CAPITAL = re.compile(r"[A-Za-zß-öø-ÿ][À-ÖØ-ÞŠŽŸŒŐŰ][a-zß-öø-ÿ]")
SAVE_AS_UTF8 = "save the file as UTF-8 and try again"


@dataclass(frozen=True)
class Decoded:
    """A text and how it was written. `encode` gives back the bytes it was read from."""

    text: str = field(repr=False)
    encoding: str
    mark: bytes = b""

    def holds(self, text: str) -> bool:
        """Can this encoding write `text`?"""
        try:
            text.encode(self.encoding)
        except UnicodeEncodeError:
            return False
        return True

    def encode(self, text: str) -> bytes:
        """`text` as bytes, mark included.

        A text that a legacy encoding cannot hold is written in UTF-8 with a byte order mark,
        which editors and spreadsheets recognise; `holds` tells beforehand. Lone surrogates
        cannot be written at all -> DocumentError.
        """
        if self.holds(text):
            return self.mark + text.encode(self.encoding)
        try:
            return codecs.BOM_UTF8 + text.encode("utf-8")
        except UnicodeEncodeError:
            raise DocumentError(
                "the new text holds half of a surrogate pair, which no file can store"
            ) from None


def decode(data: bytes, *, declared: str | None = None, place: str = "") -> Decoded:
    """The text of `data`, with proof that it can be written back byte for byte.

    declared: the encoding that the file itself or its sender names; believed if it fits.
    Raises DocumentError for binary data and for an encoding that is not certain.
    """
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return _strict(data, encoding, mark, place, "its byte order mark")
    if declared and (named := _known(declared)) and named != "utf-16":
        return _strict(data, named, b"", place, "its declaration")
    if (wide := _utf16_by_zeros(data)) is not None:
        return _strict(data, wide, b"", place, "its zero bytes")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return _guess(data, place)
    return _checked(Decoded(text, "utf-8"), place)


def _known(name: str) -> str | None:
    """Python's name of a declared text encoding; None for one it does not have."""
    try:
        info = codecs.lookup(name.strip())
    except LookupError:
        return None
    if not getattr(info, "_is_text_encoding", True):  # rot13, base64: not encodings of text
        return None
    return info.name


def _strict(data: bytes, encoding: str, mark: bytes, place: str, why: str) -> Decoded:
    body = data[len(mark) :]
    names = [encoding]
    if encoding in ("iso8859-1", "ascii"):  # the web's rule: such files are Windows-1252
        names = ["utf-8", "cp1252", "iso8859-1"] if encoding == "ascii" else ["cp1252", encoding]
    for name in names:
        try:
            text = body.decode(name)
        except (UnicodeDecodeError, UnicodeError):
            continue
        if text.encode(name, "surrogatepass") == body:
            return _checked(Decoded(text, name, mark), place)
    raise DocumentError(
        f"the bytes are not the {encoding} that {why} announces",
        next_step=SAVE_AS_UTF8,
        place=place,
    )


def _checked(decoded: Decoded, place: str) -> Decoded:
    at = decoded.text.find("\0")
    if at >= 0:
        raise DocumentError(
            "this is binary data, not text",
            next_step="leave the file out, or convert it to a format that dpredact reads",
            place=f"{place}, offset {at}" if place else f"offset {at}",
        )
    return decoded


def _utf16_by_zeros(data: bytes) -> str | None:
    """UTF-16 without a mark, told by the zero bytes of its ASCII characters."""
    head = data[:4096]
    head = head[: len(head) & ~1]
    if len(head) < 4 or len(data) % 2 or 0 not in head:
        return None
    even, odd = head[0::2].count(0), head[1::2].count(0)
    half = len(head) // 2
    for zeros, others, encoding in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
        if zeros >= 0.2 * half and others <= 0.5 * zeros:
            return encoding
    return None


def _guess(data: bytes, place: str) -> Decoded:
    from charset_normalizer import from_bytes

    found = [
        (match.coherence, name)
        for match in from_bytes(data, cp_isolation=list(GUESSED), threshold=MOST_CHAOS)
        if match.coherence >= LEAST_COHERENCE
        for name in match.could_be_from_charset
    ]
    best = max((coherence for coherence, _ in found), default=0.0)
    close = [name for coherence, name in found if coherence >= best - NEARLY]
    for encoding in sorted(close, key=_rank):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if ODD_CAPITAL.search(text):
            break
        if text.encode(encoding) == data:
            return _checked(Decoded(text, encoding), place)
    raise DocumentError(
        "the text encoding is not certain: no byte order mark, not UTF-8, and no other "
        "encoding fits well enough",
        next_step=SAVE_AS_UTF8,
        place=place,
    )


def _rank(encoding: str) -> int:
    return GUESSED.index(encoding) if encoding in GUESSED else len(GUESSED)
