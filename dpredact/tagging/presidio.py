"""Presidio's analyzer as one more tagger, if the owner asks for it (extra `presidio`).

It runs with the English spaCy pipeline of the catalog, so nothing is downloaded. The door
for presidio_analyzer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dpredact.errors import Missing, PolicyError
from dpredact.lm import catalog
from dpredact.policy import entities
from dpredact.tagging import language, windows
from dpredact.tagging.interface import Span, Tagging

if TYPE_CHECKING:
    from dpredact.policy import TaggerSettings

WINDOW, OVERLAP = 100_000, 500

# Presidio's type -> entity; "" is left out (a UUID is no number of anybody).
TYPES: dict[str, str] = {
    "DATE_TIME": "DATE",
    "MAC_ADDRESS": "MAC",
    "CRYPTO": "ACCOUNT",
    "US_BANK_NUMBER": "ACCOUNT",
    "ABA_ROUTING_NUMBER": "ACCOUNT",
    "UUID": "",
}
# The national types follow a pattern: a country, then what it is. First match wins.
_NATIONAL: tuple[tuple[str, str], ...] = (
    (r"PASSPORT$", "PASSPORT"),
    (r"LICEN[CS]E$|FUEHRERSCHEIN$", "LICENSE"),
    (r"VEHICLE_REGISTRATION$|LICENSE_PLATE$|KFZ$", "PLATE"),
    (r"TAX|VAT|ITIN$|_TIN$|TFN$|GSTIN$|_PAN$|FISCAL", "TAX_ID"),
    (r"POSTAL_CODE$|POSTCODE$|PLZ$", "ADDRESS"),
    (r"(?:MOBILE|TELEPHONE)_NUMBER$", "PHONE"),
    (r"^[A-Z]{2}_", "NATIONAL_ID"),
)


def entity_of(kind: str) -> str | None:
    """Our entity for a type of Presidio; "" if it is left out, None if nobody mapped it."""
    if kind in TYPES:
        return TYPES[kind]
    try:
        return entities.canonical(kind)
    except KeyError:
        pass
    if kind.endswith("LICENSE_PLATE"):
        return "PLATE"
    return next((e for pattern, e in _NATIONAL if re.search(pattern, kind)), None)


class PresidioTagger:
    """A `Tagger` that asks one AnalyzerEngine."""

    name = "presidio"

    def __init__(self, engine: Any, *, languages: str = "en") -> None:
        self._engine = engine
        self._languages = languages

    def tag(self, text: str) -> Tagging:
        """Spans of all windows, in offsets of `text`. Never raises because of the text."""
        found = []
        for window in windows.cut(text, WINDOW, OVERLAP):
            part = text[window.start : window.end]
            for result in self._engine.analyze(part, language="en"):
                if entity := entity_of(result.entity_type):
                    start, end = window.start + result.start, window.start + result.end
                    found.append(Span(start, end, entity, result.score, (self.name,)))
        pieces = (piece for span in found for piece in windows.by_line(text, span))
        reasons = language.gaps(text, self._languages)
        return Tagging(tuple(windows.join(pieces)), not reasons, reasons)


def load(settings: TaggerSettings) -> PresidioTagger:
    """Presidio's own recognizers on the catalog's spaCy pipeline.

    Missing if the extra is not installed; PolicyError if this version of Presidio has a
    type that nobody mapped.
    """
    try:
        from presidio_analyzer import AnalyzerEngine
        from presidio_analyzer.nlp_engine import NlpEngineProvider
    except ImportError:
        raise Missing(
            "presidio-analyzer is not installed", next_step="install dpredact[presidio]"
        ) from None
    model = {"lang_code": "en", "model_name": str(catalog.folder("en-core-web-sm"))}
    provider = NlpEngineProvider(
        nlp_configuration={"nlp_engine_name": "spacy", "models": [model]}
    )
    engine = AnalyzerEngine(nlp_engine=provider.create_engine(), supported_languages=["en"])
    unknown = [k for k in engine.get_supported_entities("en") if entity_of(k) is None]
    if unknown:
        raise PolicyError(
            f"Presidio reports the type {unknown[0]}, which no group can name",
            next_step="use another version of presidio-analyzer, or leave presidio out",
            place="tagger.use",
        )
    return PresidioTagger(engine, languages=settings.language)
