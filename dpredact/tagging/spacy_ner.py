"""Names, places, organisations and dates, found by a spaCy pipeline. The door for spaCy.

Only the NER component of a pipeline is loaded. The vocabulary that spaCy would collect
from every text is dropped after each call (`memory_zone`), so memory stays flat however
many documents are read, and no words of one document outlive its call.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpredact.errors import ModelError
from dpredact.tagging import language, lexicon, offices, windows
from dpredact.tagging.interface import Span, Tagging

if TYPE_CHECKING:
    from dpredact.policy import TaggerSettings

# spaCy refuses more than 1,000,000 characters; smaller windows bound the memory too.
WINDOW = 100_000
OVERLAP = 500

# OntoNotes 5 label -> entity, and how often a finding of the label is right (measured on
# the training splits; spaCy itself gives no score). Left out: CARDINAL and ORDINAL, which
# identify nobody alone, LAW, because laws are public, and PRODUCT, mostly wrong.
ONTONOTES: dict[str, tuple[str, float]] = {
    "PERSON": ("PERSON", 0.85),
    "NORP": ("DEMOGRAPHIC", 0.8),
    "FAC": ("LOCATION", 0.6),
    "ORG": ("ORG", 0.6),
    "GPE": ("LOCATION", 0.85),
    "LOC": ("LOCATION", 0.7),
    "DATE": ("DATE", 0.85),
    "TIME": ("TIME", 0.8),
    "MONEY": ("MONEY", 0.8),
    "PERCENT": ("QUANTITY", 0.8),
    "QUANTITY": ("QUANTITY", 0.7),
    "EVENT": ("MISC", 0.6),
    "WORK_OF_ART": ("MISC", 0.5),
    "LANGUAGE": ("DEMOGRAPHIC", 0.6),
}

PIPELINE = "en-core-web-sm"  # its name in the catalog

_AGE = re.compile(
    r"(?i)\bage[ds]?\b|\b(?:years?|months?|weeks?|days?)[- ]old\b|\bin (?:his|her|their) \w+ies\b"
)
_NO_DATE = re.compile(r"[°#@$€£]|\bp{1,2}\.\s*\d")
_BARE_NUMBER = re.compile(r"\d+")


class SpacyTagger:
    """A `Tagger` that runs one NER pipeline.

    labels: label of the pipeline -> (entity, score). A label that is missing there is not
    reported. languages: those the owner vouches for beside the pipeline's own (see
    `language.gaps`); a paragraph in another one makes the tagging incomplete.
    """

    name = "spacy"

    def __init__(
        self,
        nlp: Any,
        labels: Mapping[str, tuple[str, float]] = ONTONOTES,
        *,
        languages: str = "en",
    ) -> None:
        self._nlp = nlp
        self._labels = labels
        self._languages = languages
        self._lock = threading.Lock()  # a memory zone belongs to one thread at a time

    def tag(self, text: str) -> Tagging:
        """Spans of all windows, in offsets of `text`. Never raises because of the text."""
        found: list[Span] = []
        with self._lock:
            for window in windows.cut(text, WINDOW, OVERLAP):
                found += self._read(text[window.start : window.end], window.start)
        pieces = (piece for span in found for piece in windows.by_line(text, span))
        reasons = language.gaps(text, self._languages, (self._nlp.lang,))
        return Tagging(tuple(windows.join(pieces)), not reasons, reasons)

    def _read(self, part: str, offset: int) -> list[Span]:
        spans = []
        with self._nlp.memory_zone():
            for ent in self._nlp(part).ents:
                entity, score = self._labels.get(ent.label_, ("", 0.0))
                words = ent.text.partition("#")[0].rstrip()
                if entity == "DATE":
                    entity = dated(words) or ""
                elif entity in ("ORG", "LOCATION") and offices.public(words):
                    continue
                if entity and words and not no_name(part, ent.start_char, words):
                    start = offset + ent.start_char
                    spans.append(Span(start, start + len(words), entity, score, (self.name,)))
        return spans


def no_name(text: str, start: int, words: str) -> bool:
    """Is this a hashtag (a topic), or an ordinary word that labels a field ("Seller: …")?"""
    if text[start - 1 : start] == "#":
        return True
    label = text[start + len(words) : start + len(words) + 1] == ":"
    return label and lexicon.ordinary(words)


def dated(words: str) -> str | None:
    """What a phrase that was taken for a date is: DATE, AGE, or None (a number, a bearing)."""
    if _AGE.search(words):
        return "AGE"
    if _NO_DATE.search(words):
        return None
    if _BARE_NUMBER.fullmatch(words) and not 1500 <= int(words) <= 2199:
        return None
    return "DATE"


def load_pipeline(folder: Path, *, keep: tuple[str, ...] = ("ner",)) -> Any:
    """The pipeline in `folder` with nothing but the components in `keep`.

    ModelError if the folder holds no pipeline that this spaCy can read.
    """
    with _without_torch():
        import spacy
        from spacy import util

    try:
        names = util.load_meta(folder / "meta.json")["pipeline"]
        nlp = spacy.load(folder, exclude=[n for n in names if n not in keep])
    except (OSError, ValueError, KeyError) as damage:
        raise ModelError(
            f"the spaCy pipeline cannot be read ({type(damage).__name__})",
            next_step="fetch it again with `dpredact models fetch`",
            place=folder.name,
        ) from None
    nlp.max_length = max(nlp.max_length, 10 * WINDOW)
    return nlp


def load(settings: TaggerSettings) -> SpacyTagger:
    """The English pipeline from the catalog (nothing is downloaded here).

    It runs whatever the policy's language is: on Spanish, French and Danish court and
    hospital texts it found a tenth to a quarter of the mentions more than rules and Rampart
    alone, at many false ones. On the package index, the Spanish pipeline is under GPL (from
    the AnCora corpus), the French one under LGPL-LR (Sequoia), and there is none for German
    and Danish; so such a document is read in full only if its owner says so
    (`language.gaps`).
    ModelError, with the command that fetches it, if it is not on this machine.
    """
    from dpredact.lm import catalog

    pipeline = load_pipeline(Path(catalog.folder(PIPELINE)))
    return SpacyTagger(pipeline, languages=settings.language)


@contextmanager
def _without_torch() -> Iterator[None]:
    """spaCy loads torch where it finds it, which takes seconds, and uses it for nothing here."""
    if "torch" in sys.modules:
        yield
        return
    sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["torch"]
