"""One word, one meaning: what several taggers call a person, a place or an organisation.

Name finders often disagree on a rare name, also with themselves from line to line. All
mentions of the same words vote; a given name that is no town is a person; and where two in
five say person, person it is: the promise is about people.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

from dpredact.tagging import identity, lexicon
from dpredact.tagging.interface import Span

_VOTERS = frozenset({"PERSON", "LOCATION", "ORG"})
_PERSON_SHARE = 0.4
_UNKNOWN_SHARE = 0.25  # of two words that are no town and in no dictionary
_SURE = 0.8  # a rule this sure (after a title, a label, "lives in") keeps its own word


def agree(text: str, spans: list[Span]) -> list[Span]:
    """The same spans, those of PERSON, LOCATION and ORG with the entity that won the vote."""
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    for span in spans:
        if span.entity in _VOTERS:
            votes[identity.flat(text[span.start : span.end])][span.entity] += span.score
    winners = {words: _winner(words, count) for words, count in votes.items() if len(count) > 1}
    return [_revised(text, span, winners) for span in spans]


def _winner(words: str, count: Counter[str]) -> str:
    first = words.split()[0]
    given = first in lexicon.first_names() and not lexicon.is_common(first)
    if count["PERSON"] and given and words not in lexicon.places():
        return "PERSON"
    parts = words.split()
    unknown = len(parts) == 2 and not any(p in lexicon.places() or lexicon.is_common(p) for p in parts)
    if count["PERSON"] >= (_UNKNOWN_SHARE if unknown else _PERSON_SHARE) * count.total():
        return "PERSON"
    return count.most_common(1)[0][0]


def _revised(text: str, span: Span, winners: dict[str, str]) -> Span:
    if span.entity not in _VOTERS or _sure(span):
        return span
    entity = winners.get(identity.flat(text[span.start : span.end]), span.entity)
    return span if entity == span.entity else replace(span, entity=entity)


def _sure(span: Span) -> bool:
    return span.score >= _SURE and any(s.startswith(("patterns:", "lists:")) for s in span.sources)
