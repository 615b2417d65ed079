"""Names, places, organisations and dates, found by a spaCy pipeline. The door for spaCy.

Only the NER component of a pipeline is loaded. The vocabulary that spaCy would collect
from every text is dropped after each call (`memory_zone`), so memory stays flat however
many documents are read, and no words of one document outlive its call.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpredact.errors import ModelError, UsageError
from dpredact.tagging import windows
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

# Pipelines by language, with the name under which the catalog knows them.
PIPELINES: dict[str, str] = {"en": "en-core-web-sm"}

_AGE = re.compile(
    r"(?i)\bage[ds]?\b|\b(?:years?|months?|weeks?|days?)[- ]old\b|\bin (?:his|her|their) \w+ies\b"
)
_NO_DATE = re.compile(r"[°#@$€£]|\bp{1,2}\.\s*\d")
_BARE_NUMBER = re.compile(r"\d+")


class SpacyTagger:
    """A `Tagger` that runs one NER pipeline.

    labels: label of the pipeline -> (entity, score). A label that is missing there is not
    reported.
    """

    def __init__(
        self, nlp: Any, labels: Mapping[str, tuple[str, float]] = ONTONOTES, *, name: str = "spacy"
    ) -> None:
        self.name = name
        self._nlp = nlp
        self._labels = labels
        self._lock = threading.Lock()  # a memory zone belongs to one thread at a time

    def tag(self, text: str) -> Tagging:
        """Spans of all windows, in offsets of `text`. Never raises because of the text."""
        found: list[Span] = []
        with self._lock:
            for window in windows.cut(text, WINDOW, OVERLAP):
                found += self._read(text[window.start : window.end], window.start)
        pieces = (piece for span in found for piece in windows.by_line(text, span))
        return Tagging(tuple(windows.join(pieces)))

    def _read(self, part: str, offset: int) -> list[Span]:
        spans = []
        with self._nlp.memory_zone():
            for ent in self._nlp(part).ents:
                entity, score = self._labels.get(ent.label_, ("", 0.0))
                if entity == "DATE":
                    entity = dated(ent.text) or ""
                if entity:
                    start, end = offset + ent.start_char, offset + ent.end_char
                    spans.append(Span(start, end, entity, score, (self.name,)))
        return spans


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
    """The pipeline for `settings.language`, from the catalog (nothing is downloaded here).

    UsageError if there is no openly licensed pipeline for the language.
    """
    from dpredact.lm import catalog

    try:
        name = PIPELINES[settings.language]
    except KeyError:
        raise UsageError(
            f"no openly licensed spaCy pipeline for language {settings.language!r}",
            next_step=f"use one of {', '.join(sorted(PIPELINES))}, or leave spacy out of tagger.use",
            place="tagger.language",
        ) from None
    return SpacyTagger(load_pipeline(Path(catalog.folder(name))))

