"""Who is who: one running number per person or value, and every further mention of each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache

from dpredact.policy.entities import FAMILY_OF
from dpredact.tagging import lexicon
from dpredact.tagging.interface import Span
from dpredact.tagging.language import FUNCTION_WORDS

TITLES = frozenset(
    "mr mrs ms mx miss dr prof professor sir lady lord dame judge justice rev fr sgt lt capt col gen "
    "herr herrn frau hr fru frk m mm mme mlle me sr sra srta don dona d dna dra senor senora monsieur "
    "madame maitre jr ii iii phd md".split()
)
PARTICLES = frozenset("de del la los da dos di du van der den von zu bin ibn al el le ter ten y".split())
MONTHS = frozenset("may march april june august mars".split())
_AFFILIATION = re.compile(r"(?:pro|anti|non|neo|ex|post|pre|pan)-([a-zß-öø-ÿ]+)", re.IGNORECASE)
_PART = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*\.?")
_MONTH_BEFORE = re.compile(
    r"(?i)\b(?:in|by|since|until|till|before|after|during|from|of|early|late|mid|last|next|this|every|each|end of|\d{1,2}(?:st|nd|rd|th)?|to|through|between)[ -]$"
)
_MONTH_AFTER = re.compile(r" ?\d|, ?\d{4}| (?:and|to|or|or early) (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)")
_HELPER_AFTER = re.compile(r" (?:I|you|he|she|it|we|they|the|this|that|there|not|be)\b")


def parts(words: str) -> tuple[str, ...]:
    """A name's parts in lookup form, given names first, titles and full stops left out."""
    surname, comma, given = words.partition(", ")
    words = f"{given} {surname}" if comma else words
    found = (lexicon.plain(p).rstrip(".") for p in _PART.findall(words.replace("-", " ")))
    return tuple(p for p in found if p and p not in TITLES)


def affiliation(word: str) -> bool:
    """Is this what somebody is for or against, and no name: pan-democrat, anti-war?

    Only where an ordinary word follows in lower case: pro-Elphberg holds a name, Pan-Li is one.
    """
    found = _AFFILIATION.fullmatch(word)
    return bool(found) and found[1].islower() and lexicon.ordinary(found[1])


@dataclass
class People:
    """The persons of one document, in order of their first full mention."""

    names: list[tuple[str, ...]] = field(default_factory=list, repr=False)
    last_seen: list[int] = field(default_factory=list, repr=False)
    apart: frozenset[tuple[str, ...]] = frozenset()  # names the owner listed as own persons

    def number(self, name: tuple[str, ...], place: int) -> int:
        """The person that `name` belongs to, the latest mentioned one if several fit."""
        if name not in self.names:
            fitting = [] if name in self.apart else [i for i, n in enumerate(self.names) if self._fits(name, n)]
            if not fitting:
                self.names.append(name)
                self.last_seen.append(place)
                return len(self.names) - 1
            index = max(fitting, key=lambda i: self.last_seen[i])
            self.last_seen[index] = place
            return index
        index = self.names.index(name)
        self.last_seen[index] = place
        return index

    @staticmethod
    def _fits(name: tuple[str, ...], full: tuple[str, ...]) -> bool:
        """Is `name` a shorter form of `full`: parts in order, each whole or an initial?"""
        if len(name) > len(full):
            return False
        if len(name) == len(full) > 1 and all(a == b for a, b in zip(name, full, strict=True)):
            return True
        at = 0
        whole = False
        for part in name:
            while at < len(full) and not (full[at] == part or (len(part) == 1 and full[at].startswith(part))):
                at += 1
            if at == len(full):
                return False
            whole = whole or len(part) > 1
            at += 1
        return whole or len(name) >= 2


def number(text: str, spans: list[Span], apart: Iterable[str] = ()) -> list[Span]:
    """The same spans with `identity` set. Longer names are read first, so that a surname
    that comes before the full name still finds its person."""
    people = People(apart=frozenset(parts(name) for name in apart))
    values: dict[tuple[str, str], int] = {}
    own: dict[int, int] = {}
    persons = [(parts(text[s.start : s.end]), s.start, i) for i, s in enumerate(spans) if s.entity == "PERSON"]
    for name in sorted({n for n, _, _ in persons}, key=lambda n: (-len(n), -sum(map(len, n)), n)):
        first = min(place for n, place, _ in persons if n == name)
        people.number(name, first)
    order: dict[int, int] = {}
    for name, place, i in sorted(persons, key=lambda p: p[1]):
        person = people.number(name, place)
        own[i] = order.setdefault(person, len(order))
    counts: dict[str, int] = {}
    out = []
    for i, span in enumerate(spans):
        if i in own:
            out.append(replace(span, identity=own[i]))
            continue
        family = FAMILY_OF[span.entity]
        key = (family, value_key(text[span.start : span.end]))
        if key not in values:
            values[key] = counts.get(family, 0)
            counts[family] = values[key] + 1
        out.append(replace(span, identity=values[key]))
    return out


def value_key(words: str) -> str:
    """Two writings of one value are equal: case, accents, blanks and marks do not count."""
    return re.sub(r"[\W_]+", "", lexicon.plain(words)) or words


# -- further mentions -------------------------------------------------------------------

# Families in which the same words mean the same thing wherever they stand.
_REPEATED = frozenset({"PERSON", "LOCATION", "ADDRESS", "ORG", "EMAIL", "PHONE", "CARD", "IBAN", "ID"})


def mentions(text: str, spans: list[Span], *, capitals: bool = False) -> list[Span]:
    """Further whole-word mentions of what is tagged, in any case and with any accents.

    Of a person: the full name and each part of it. A part that is also an ordinary word
    ("Rose", "May") counts only with a capital and where it cannot be the word. `capitals`:
    so does every part that no list of names knows (in languages whose words are unknown).
    """
    import ahocorasick

    wanted: dict[str, tuple[str, bool]] = {}
    for span in spans:
        family = FAMILY_OF[span.entity]
        if family not in _REPEATED:
            continue
        ordinary = lexicon.ordinary(text[span.start : span.end])
        if ordinary and not _repeats(text[span.start : span.end], span.entity):
            continue  # "the Council" here does not make every council a secret
        for words, whole in _forms(text[span.start : span.end], span.entity):
            whole = whole and not (ordinary and span.entity == "LOCATION")
            if words not in wanted or whole:
                wanted[words] = (span.entity, whole)
    if not wanted:
        return []
    machine = ahocorasick.Automaton()
    for words, (entity, whole) in wanted.items():
        machine.add_word(words, (words, entity, whole))
    machine.make_automaton()
    taken = sorted((s.start, s.end) for s in spans)
    low = flat(text)
    found = []
    cursor = 0
    for last, (words, entity, whole) in machine.iter(low):
        start, end = last + 1 - len(words), last + 1
        if not whole_word(text, start, end):
            continue
        while cursor and taken[min(cursor, len(taken) - 1)][0] > start:
            cursor -= 1
        while cursor < len(taken) and taken[cursor][1] <= start:
            cursor += 1
        if cursor < len(taken) and taken[cursor][0] <= start and end <= taken[cursor][1]:
            continue
        if not whole and not as_name(text, start, end):
            continue
        if capitals and not whole and text[start].islower() and not _listed(words):
            continue
        found.append(Span(start, end, entity, 0.8, ("propagation:same words",)))
    return found


def _repeats(words: str, entity: str) -> bool:
    """Do these ordinary words mean the same elsewhere? Towns do (Reading), with a capital."""
    return entity not in ("ORG", "LOCATION") or (
        entity == "LOCATION" and lexicon.plain(words) in lexicon.places()
    )


def _forms(words: str, entity: str) -> Iterable[tuple[str, bool]]:
    """(form, is it unmistakable) of one tagged mention."""
    form = flat(words)
    if entity != "PERSON":
        if len(form) >= 3:
            yield form, True
        return
    written = re.findall(r"[^\W\d_]+(?:['’-][^\W\d_]+)*", words)
    pieces = [flat(p) for p in written if not affiliation(p)]
    pieces = [p for p in pieces if p not in TITLES]
    if len(pieces) > 1:
        yield form, True
    for piece in pieces:
        for part in {piece, *piece.split("-")}:
            if len(part) >= 2 and part not in PARTICLES and part not in _FUNCTION and not _place_only(part):
                yield part, False


_FUNCTION = frozenset(word for words in FUNCTION_WORDS.values() for word in words)


def _listed(word: str) -> bool:
    return word in lexicon.first_names() or word in lexicon.surnames()


def _place_only(word: str) -> bool:
    """A word of a name that is a place or a make and nobody's name (Beijing)."""
    if word in lexicon.first_names() or word in lexicon.surnames():
        return False
    return word in lexicon.places() or word in lexicon.proper()


def flat(text: str) -> str:
    """Lower case without accents, one code point for one; a line break becomes a blank."""
    if text.isascii():
        return text.lower().replace("\n", " ")
    return _NOT_ASCII.sub(lambda m: _flat_letter(m[0]), text.replace("\n", " ")).translate(_LOWER)


_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_LOWER = {ord(c): c.lower() for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


@lru_cache(maxsize=4096)
def _flat_letter(char: str) -> str:
    plain = lexicon.plain(char)
    return plain if len(plain) == 1 else char


def whole_word(text: str, start: int, end: int) -> bool:
    before = text[start - 1] if start else " "
    after = text[end] if end < len(text) else " "
    return not (before.isalnum() and text[start].isalnum()) and not (after.isalnum() and text[end - 1].isalnum())


def as_name(text: str, start: int, end: int) -> bool:
    """May this word, part of somebody's name, be the name here?"""
    words = text[start:end]
    plain = lexicon.plain(words)
    if not lexicon.is_common(plain) and plain not in MONTHS:
        return len(words) > 2 or words[0].isupper()
    if not words[0].isupper():
        return False
    if plain in MONTHS and (_MONTH_BEFORE.search(text[max(0, start - 14) : start]) or _MONTH_AFTER.match(text, end)):
        return False
    return not (plain in ("will", "may", "can") and _HELPER_AFTER.match(text, end))
