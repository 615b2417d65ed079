"""Rules: patterns with checksums and labels. Fast, exact about what they know, and local."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpredact.tagging import recase
from dpredact.tagging.interface import Span, Tagging
from dpredact.tagging.patterns import (
    contact,
    dates,
    demographics,
    finance,
    ids,
    names,
    organisations,
    phones,
    places,
    secrets,
)
from dpredact.tagging.patterns.interface import Hit, Reading, Rule

if TYPE_CHECKING:
    from dpredact.policy import TaggerSettings

RULES: tuple[Rule, ...] = (
    contact.find,
    phones.find,
    finance.find,
    ids.find,
    secrets.find,
    dates.find,
    places.find,
    demographics.find,
    names.find,
    organisations.find,
)


class PatternTagger:
    """All rules on one text. Expects the folded copy (`dpredact.tagging.folding`).

    Guarantee: reads every text whole, whatever its length; never raises because of it.
    """

    name = "patterns"

    def __init__(self, regions: tuple[str, ...] = ("US", "GB"), language: str = "en") -> None:
        self._regions = phones.known_regions(regions)
        self._language = language

    def read(self, text: str) -> list[Hit]:
        reading = Reading(text, recase.recase(text), self._regions, self._language)
        return sorted({hit for rule in RULES for hit in rule(reading)})

    def tag(self, text: str) -> Tagging:
        return Tagging(
            tuple(
                Span(h.start, h.end, h.entity, h.score, (f"{self.name}:{h.rule}",))
                for h in self.read(text)
            )
        )


def load(settings: TaggerSettings) -> PatternTagger:
    """PolicyError if `settings.regions` holds a code that names no country."""
    return PatternTagger(settings.regions, settings.language)
