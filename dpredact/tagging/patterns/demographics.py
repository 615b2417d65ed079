"""Family status and number of children, looked for when a group asks for DEMOGRAPHIC."""

from __future__ import annotations

from collections.abc import Iterator

from dpredact.tagging.patterns.anchors import anchored
from dpredact.tagging.patterns.interface import Hit, Reading, hits

_COUNT = r"(?:one|two|three|four|five|six|seven|eight|nine|ten|\d{1,2})"
_STATUS = anchored(
    r"(?i)\b(?:(?:un|newly |happily |re)?married|divorced|divorcee|widow(?:ed|er)?|separated from|engaged to be married|"
    r"single (?:mother|father|mom|mum|dad|parent)|verheiratet|geschieden|verwitwet|ledig|casad[oa]|divorciad[oa]|viud[oa]|"
    r"solter[oa]|mariée?|divorcée?|veuve?|célibataire|gift|fraskilt|enke(?:mand)?|ugift)\b",
    "married unmarried newly_married happily_married remarried divorced divorcee widow separated engaged single verheiratet "
    "geschieden verwitwet ledig casad divorciad viud solter marie divorce veuf veuve celibataire gift fraskilt enke ugift",
)
_CHILDREN = anchored(
    rf"(?i)\b(?:(?:mother|father|mom|mum|dad|parents?|grand(?:mother|father|parent)) (?:of|to) {_COUNT}(?: (?:kids|children|sons|daughters))?"
    rf"|(?:no|{_COUNT}) (?:(?:adult|young|small|teenage|grown) )?(?:kids|children|sons|daughters)|childless)\b",
    "mother father mom mum dad parent grand no_ one two three four five six seven eight nine ten 1 2 3 4 5 6 7 8 9 childless",
)


def find(reading: Reading) -> Iterator[Hit]:
    english_only = not reading.spoken & {"da"}  # "gift" is a word of its own in English
    for hit in hits(reading.anchored(_STATUS), "DEMOGRAPHIC", 0.75, "family status"):
        if not (english_only and reading.flat[hit.start : hit.end] == "gift"):
            yield hit
    yield from hits(reading.anchored(_CHILDREN), "DEMOGRAPHIC", 0.75, "number of children")
