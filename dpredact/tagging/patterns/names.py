"""People's names, from the words around them. (grows)"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dpredact.tagging.patterns.interface import Hit, Reading, hits

_TITLE = re.compile(
    r"\b(?P<x>(?:Mr|Mrs|Ms|Miss|Dr|Prof|Sir|Herr|Frau|Hr|Fru|Mme|Mlle|Sra?|Don|Doña)\b\.? (?:[A-ZÀ-ÖØ-Þ]\.? ?)*[A-ZÀ-ÖØ-Þ][\w'’-]+(?: [A-ZÀ-ÖØ-Þ][\w'’-]+){0,3})"
)


def find(reading: Reading) -> Iterator[Hit]:
    yield from hits(_TITLE, reading.cased, "PERSON", 0.9, "name after a title")
