"""Rampart, a small token classifier for names, addresses and ids. The door for onnxruntime.

Rampart (National Design Studio, CC BY 4.0; see NOTICE) reads lower-cased word pieces, 17
kinds. A text of any length is cut by tokens into overlapping windows; every token takes
its scores from the window in which it stands farthest from a border.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpredact.errors import ModelError
from dpredact.tagging import language, windows
from dpredact.tagging.interface import Span, Tagging

if TYPE_CHECKING:
    import numpy as np

    from dpredact.policy import TaggerSettings

WINDOW = 192  # tokens; the model allows 510, and sees numbers best in short windows
OVERLAP = 48  # tokens that neighbouring windows share: longer than any name or address
CHUNK = 50_000  # characters that are turned into tokens at once, so memory stays bounded

# The layer that `trained` goes on from: Rampart's second of six.
TAP = "/bert/encoder/layer.1/output/LayerNorm/LayerNormalization_output_0"

# Rampart's kind -> entity. Kinds of one entity add up: a word that is half a given name
# and half a surname is a name. E-mail addresses and links are left to the patterns.
KINDS: dict[str, str] = {
    "GIVEN_NAME": "PERSON",
    "SURNAME": "PERSON",
    "PHONE": "PHONE",
    "TAX_ID": "TAX_ID",
    "BANK_ACCOUNT": "ACCOUNT",
    "ROUTING_NUMBER": "ACCOUNT",
    "GOVERNMENT_ID": "NATIONAL_ID",
    "PASSPORT": "PASSPORT",
    "DRIVERS_LICENSE": "LICENSE",
    "BUILDING_NUMBER": "ADDRESS",
    "STREET_NAME": "ADDRESS",
    "SECONDARY_ADDRESS": "ADDRESS",
    "CITY": "LOCATION",
    "STATE": "LOCATION",
    "ZIP_CODE": "ADDRESS",
}

# How sure the model must be. It takes long digit strings for numbers of some kind rather
# easily, and the patterns know those better; names it misses more often than it invents.
THRESHOLDS: dict[str, float] = {
    "PERSON": 0.5,
    "LOCATION": 0.5,
    "ADDRESS": 0.5,
}
NUMBER_THRESHOLD = 0.9


@dataclass(frozen=True)
class Reading:
    """What the model said about the tokens of one stretch of text.

    start, end: (n,) code-point offsets of each token. probabilities: (n, kinds).
    windows: (start, end, own start, own end) in tokens; hidden: for each of them the
    tapped layer's output, (end - start + 2, width), with the marks at both ends.
    """

    start: np.ndarray
    end: np.ndarray
    probabilities: np.ndarray
    windows: list[tuple[int, int, int, int]]
    hidden: list[np.ndarray]


class Encoder:
    """Tokenizer and session of one token classifier in a folder.

    threads: 1 gives the same numbers on every machine and leaves cores to other work;
    0 lets onnxruntime decide. tap: name of an inner value of the graph to be given too.
    """

    def __init__(self, folder: Path, *, threads: int = 1, tap: str | None = None) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            self.labels = [config["id2label"][str(i)] for i in range(len(config["id2label"]))]
            self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
            graph = model_file(folder).read_bytes()
            self._session = onnxruntime.InferenceSession(
                tapped(graph, tap) if tap else graph, options, providers=["CPUExecutionProvider"]
            )
        except Exception as damage:  # the libraries raise bare Exceptions of their own
            raise ModelError(
                f"the token classifier cannot be read ({type(damage).__name__})",
                next_step="fetch it again with `dpredact models fetch`",
                place=folder.name,
            ) from None
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._before, self._after = _marks(self._tokenizer)
        self._inputs = {i.name for i in self._session.get_inputs()}
        self._memory: tuple[str, Reading] | None = None

    def read(self, text: str) -> Reading:
        """What the model says of every token of `text`.

        The last answer is kept: two taggers that read with one model pay once.
        """
        memory = self._memory
        if memory is None or memory[0] != text:
            memory = self._memory = (text, self._read(text))
        return memory[1]

    def _read(self, text: str) -> Reading:
        import numpy as np

        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        ids = encoding.ids
        offsets = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)
        out = np.zeros((len(ids), len(self.labels)), dtype=np.float32)
        cuts, hidden = list(plan(len(ids), WINDOW, OVERLAP)), []
        for low, high, own_low, own_high in cuts:
            logits, *inner = self._run([*self._before, *ids[low:high], *self._after])
            first = len(self._before) - low
            out[own_low:own_high] = logits[0, first + own_low : first + own_high]
            hidden += [value[0] for value in inner]
        out = np.exp(out - out.max(axis=1, keepdims=True, initial=-1e9))
        out /= out.sum(axis=1, keepdims=True)
        return Reading(offsets[:, 0], offsets[:, 1], out, cuts, hidden)

    def _run(self, ids: list[int]) -> list[np.ndarray]:
        import numpy as np

        row = np.array([ids], dtype=np.int64)
        feed = {"input_ids": row, "attention_mask": np.ones_like(row)}
        if "token_type_ids" in self._inputs:
            feed["token_type_ids"] = np.zeros_like(row)
        return self._session.run(None, feed)


def _marks(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The ids that the model expects before and after a text: [CLS] and [SEP] or the like."""
    whole = tokenizer.encode("a")
    special = whole.special_tokens_mask
    first = special.index(0)
    return whole.ids[:first], whole.ids[len(special) - special[::-1].index(0) :]


def tapped(graph: bytes, name: str) -> bytes:
    """The ONNX file `graph` with one output more: the inner value `name`.

    An ONNX file is a protobuf message, and of two messages written one after the other a
    reader makes one: lists are joined. So this appends a ModelProto that holds only
    graph (field 7) { output (field 12) { name (field 1) } }.
    """

    def part(number: int, payload: bytes) -> bytes:
        size, length = len(payload), b""
        while size > 127:
            length, size = length + bytes([size & 127 | 128]), size >> 7
        return bytes([number << 3 | 2]) + length + bytes([size]) + payload

    return graph + part(7, part(12, part(1, name.encode())))


def model_file(folder: Path) -> Path:
    """The first ONNX file below `folder`, by name. FileNotFoundError if there is none."""
    for path in sorted(folder.rglob("*.onnx")):
        return path
    raise FileNotFoundError("no .onnx file")


def plan(tokens: int, window: int, overlap: int) -> Iterator[tuple[int, int, int, int]]:
    """(start, end, own start, own end) of each window over `tokens` tokens.

    The own parts tile the tokens; a border between two is the middle of their overlap, so
    each token is scored with at least overlap/2 tokens of context on both sides.
    """
    low = own = 0
    while own < tokens:
        high = min(low + window, tokens)
        end = high if high == tokens else high - overlap // 2
        yield low, high, own, end
        own, low = end, high - overlap


class OnnxTagger:
    """A `Tagger` that runs Rampart."""

    name = "onnx"

    def __init__(self, encoder: Encoder, *, languages: str = "en") -> None:
        self._encoder = encoder
        self._columns = columns(encoder.labels)
        self._languages = languages

    def tag(self, text: str) -> Tagging:
        """Spans in offsets of `text`. Never raises because of the text."""
        found: list[Span] = []
        for window in windows.cut(text, CHUNK, 1_000):
            found += self._read(text[window.start : window.end], window.start)
        found = [s for span in found for s in windows.by_line(text, span)]
        reasons = language.gaps(text, self._languages)
        sound = (s for s in found if plausible(text, s))
        return Tagging(tuple(windows.join(sound)), not reasons, reasons)

    def _read(self, part: str, offset: int) -> Iterator[Span]:
        reading = self._encoder.read(part)
        for entity, indices in self._columns.items():
            least = THRESHOLDS.get(entity, NUMBER_THRESHOLD)
            scores = reading.probabilities[:, indices].sum(axis=1)
            for start, end, score in runs(part, reading, scores, least):
                yield Span(start + offset, end + offset, entity, score, (self.name,))


def columns(labels: list[str]) -> dict[str, list[int]]:
    """Entity -> the columns of the model's output that speak for it (B- and I- alike)."""
    out: dict[str, list[int]] = {}
    for index, label in enumerate(labels):
        entity = KINDS.get(label.partition("-")[2])
        if entity:
            out.setdefault(entity, []).append(index)
    return out


def runs(
    text: str, reading: Reading, scores: np.ndarray, least: float
) -> Iterator[tuple[int, int, float]]:
    """(start, end, score) of words in a row whose best piece reaches `least`.

    A word is what stands between white space and punctuation other than . ' - inside it:
    half of a word is never reported. Words of one entity are joined over blanks, and over
    a comma, a full stop or a hyphen with at most one blank.
    """
    current: list[float] | None = None
    for start, end, score in _words(text, reading, scores):
        if score < least:
            continue
        if current and _joined(text[int(current[1]) : start]):
            current[1], current[2] = end, max(current[2], score)
            continue
        if current:
            yield int(current[0]), int(current[1]), float(current[2])
        current = [start, end, score]
    if current:
        yield int(current[0]), int(current[1]), float(current[2])


def _joined(between: str) -> bool:
    return len(between) <= 2 and between.strip(" ") in ("", ".", ",", "-", "'", "’")


def _words(text: str, reading: Reading, scores: np.ndarray) -> Iterator[tuple[int, int, float]]:
    """Tokens that touch each other, both alphanumeric, as one word with the best score."""
    word: list[float] | None = None
    for start, end, score in zip(
        reading.start.tolist(), reading.end.tolist(), scores.tolist(), strict=True
    ):
        if start == end or not text[start].isalnum():
            continue
        if word and word[1] >= start:
            word[1], word[2] = max(word[1], end), max(word[2], score)
            continue
        if word:
            yield int(word[0]), int(word[1]), word[2]
        word = [start, end, score]
    if word:
        yield int(word[0]), int(word[1]), word[2]


_DIGITS: dict[str, tuple[int, int]] = {
    "PHONE": (7, 15),
    "ACCOUNT": (6, 34),
    "NATIONAL_ID": (6, 20),
    "TAX_ID": (6, 20),
    "PASSPORT": (6, 12),
    "LICENSE": (5, 16),
}
_CUES: dict[str, str] = {
    "PHONE": r"[+(]|phone|tel|call|mobile|cell|fax|ring|text|number|reach",
    "ACCOUNT": r"account|acct|a/c|iban|routing|sort code|bank",
    "NATIONAL_ID": r"ssn|social|national|insurance|identity|\bid\b|security|pesel|nino",
    "TAX_ID": r"tax|\bein\b|\btin\b|itin|vat|\bnip\b",
    "PASSPORT": r"passport",
    "LICENSE": r"licen[cs]e|\bdl\b|driver|permit",
}
_CUE_REACH = 40  # characters before a number in which a word must say what it is


def plausible(text: str, span: Span) -> bool:
    """Could these characters be of that kind at all?

    The model was trained on short personal notes and calls any long digit string a number
    of some kind. So a number needs its count of digits, must not be part of a longer
    string, a fraction or a UUID, and a word before it must say what it is.
    """
    words = text[span.start : span.end]
    if span.entity in _DIGITS:
        least, most = _DIGITS[span.entity]
        around = text[max(0, span.start - 1) : span.start] + text[span.end : span.end + 1]
        cue = text[max(0, span.start - _CUE_REACH) : span.start].lower() + words[:1]
        return (
            least <= sum(c.isdigit() for c in words) <= most
            and not any(c.isalnum() or c in "_-=" for c in around)
            and re.search(_CUES[span.entity], cue) is not None
        )
    if span.entity == "ADDRESS" and not any(c.isalpha() for c in words):
        # A number of a house or a postal code counts beside a street or a town only.
        return False
    return any(c.isalnum() for c in words)


def load(settings: TaggerSettings) -> OnnxTagger:
    """Rampart from the catalog (nothing is downloaded here).

    ModelError, with the command that fetches it, if it is not on this machine.
    """
    return OnnxTagger(rampart(), languages=settings.language)


@cache
def rampart(tap: str = TAP) -> Encoder:
    """The one Rampart of this process, for every tagger that reads with it."""
    from dpredact.lm import catalog

    return Encoder(Path(catalog.folder("rampart")), tap=tap)
