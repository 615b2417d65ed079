"""The owner's word lists: deny, allow, and the people a file is about. Private; never printed.

The file that `tagger.lists` names is YAML:

    deny:                        # always tagged, whole words, any case
      - Project Heron            # as DENY
      - {text: HX-77, entity: ID}
    allow:                       # never tagged, unless they are part of a longer name
      - Reading Council
    subjects:                    # every form of a name is found: Odalys Brennwald,
      - Odalys Brennwald         # O. Brennwald, OB, Ms Brennwald's, BRENNWALD, Odalys
      - name: Tovin Maraq
        also: [Tov, TM-1]        # other names of the same person
        parts: false             # only the full name, not its parts alone

A subject listed on its own stays a person of its own, also if its name is part of another's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpredact.errors import PolicyError
from dpredact.policy import entities
from dpredact.tagging import identity, lexicon
from dpredact.tagging.interface import Span, Tagging

if TYPE_CHECKING:
    from dpredact.policy import TaggerSettings

_KEYS = ("deny", "allow", "subjects")


@dataclass(frozen=True)
class Subject:
    """One person that a file is about."""

    name: str = field(repr=False)
    also: tuple[str, ...] = field(default=(), repr=False)
    parts: bool = True

    def forms(self) -> Iterator[tuple[str, bool]]:
        """(form, must it keep its capitals) of every way in which the person may be named."""
        for name in (self.name, *self.also):
            yield name, False
        names = [n for n in re.findall(r"[^\W\d_]+(?:['’-][^\W\d_]+)*", self.name)]
        names = [n for n in names if lexicon.plain(n) not in identity.TITLES]
        solid = [n for n in names if lexicon.plain(n) not in identity.PARTICLES]
        if len(solid) < 2:
            return
        first, last = solid[0], solid[-1]
        middle = solid[1:-1]
        tail = self.name[self.name.index(names[names.index(first) + 1]) :]  # with "van der"
        yield f"{last}, {first}", False
        yield f"{last} {first}", False
        yield f"{first} {last}", False
        for dot in (".", ""):
            yield f"{first[0]}{dot} {last}", False
            yield f"{first[0]}{dot} {tail}", False
            yield f"{first} {last[0]}{dot}", False
            yield f"{last} {first[0]}{dot}", False
            if middle:
                inner = " ".join(f"{m[0]}{dot}" for m in middle)
                yield f"{first} {inner} {last}", False
                yield f"{first[0]}{dot} {inner} {last}", False
        letters = [n[0] for n in solid]
        yield ".".join(letters) + ".", True
        yield ". ".join(letters) + ".", True
        if len(letters) > 1:
            yield "".join(letters), True
        if self.parts:
            for part in solid:
                yield part, _ordinary(part)
                for piece in part.split("-"):
                    if len(piece) > 2:
                        yield piece, _ordinary(piece)


def _ordinary(word: str) -> bool:
    plain = lexicon.plain(word)
    return lexicon.is_common(plain) or len(plain) < 3


@dataclass(frozen=True)
class Lists:
    """What the file says. `repr` shows counts only."""

    deny: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # (words, entity)
    allow: tuple[str, ...] = field(default=(), repr=False)
    subjects: tuple[Subject, ...] = field(default=(), repr=False)


class ListTagger:
    """Finds the owner's words in the folded copy. Whole words only, in any case."""

    name = "lists"

    def __init__(self, lists: Lists) -> None:
        import ahocorasick

        self.lists = lists
        self.apart = tuple(s.name for s in lists.subjects)
        self.allowed = frozenset(key(words) for words in lists.allow)
        self._machine = ahocorasick.Automaton()
        wanted: dict[str, tuple[str, str, bool, str]] = {}
        for words, entity in lists.deny:
            wanted[key(words)] = (key(words), entity, False, "deny")
        for subject in lists.subjects:
            for form, capitals in subject.forms():
                wanted.setdefault(key(form), (key(form), "PERSON", capitals, "subject"))
        for words, value in wanted.items():
            if words:
                self._machine.add_word(words, value)
        self._machine.make_automaton()

    def tag(self, text: str) -> Tagging:
        return Tagging(tuple(self._find(text)))

    def _find(self, text: str) -> Iterable[Span]:
        if not len(self._machine):
            return
        for last, (words, entity, capitals, rule) in self._machine.iter(identity.flat(text)):
            start, end = last + 1 - len(words), last + 1
            if not identity.whole_word(text, start, end):
                continue
            if capitals and not _capital(text[start:end]):
                continue
            if rule == "subject" and not identity.as_name(text, start, end):
                continue
            yield Span(start, end, entity, 1.0, (f"lists:{rule}",))


def _capital(words: str) -> bool:
    letters = [w[0] for w in re.findall(r"[^\W\d_]+", words)]
    return all(c.isupper() for c in letters)


def key(words: str) -> str:
    """The form in which listed words are looked up in the folded copy."""
    from dpredact.tagging.folding import fold

    return identity.flat(" ".join(fold(words).text.split()))


def allowed(text: str, span: Span, words: frozenset[str]) -> bool:
    """Does the span consist of an allowed word (or several) and nothing else?"""
    return key(text[span.start : span.end]) in words


def read(path: str) -> Lists:
    """The lists in the YAML file `path`. PolicyError with the key, never the words, if it is wrong."""
    from dpredact.policy import file

    return parse(file.read_yaml(path), Path(path).name)


def parse(data: Any, name: str = "lists") -> Lists:
    """`data` as read from YAML. PolicyError if it is not of the form shown above."""
    if data is None:
        return Lists()
    if not isinstance(data, dict):
        raise _error("the word lists must be a mapping", name)
    for found in data:
        if found not in _KEYS:
            raise _error("a key that is none of deny, allow, subjects", name)
    deny = tuple(_denied(item, f"{name}: deny[{i}]") for i, item in enumerate(_list(data, "deny", name)))
    allow = tuple(_words(item, f"{name}: allow[{i}]") for i, item in enumerate(_list(data, "allow", name)))
    subjects = tuple(
        _subject(item, f"{name}: subjects[{i}]") for i, item in enumerate(_list(data, "subjects", name))
    )
    for i, words in enumerate(allow):
        if key(words) in {key(d) for d, _ in deny}:
            raise _error("the same words are denied and allowed", f"{name}: allow[{i}]")
    return Lists(deny, allow, subjects)


def _list(data: dict[str, Any], which: str, name: str) -> list[Any]:
    value = data.get(which) or []
    if not isinstance(value, list):
        raise _error(f"{which} must be a list", name)
    return value


def _words(item: Any, place: str) -> str:
    if not isinstance(item, str) or not key(item):
        raise _error("an entry must be words; quote numbers and dates", place)
    return item


def _denied(item: Any, place: str) -> tuple[str, str]:
    if isinstance(item, dict):
        if set(item) - {"text", "entity"} or "text" not in item:
            raise _error("an entry has the keys text and entity", place)
        try:
            entity = entities.canonical(str(item.get("entity", "DENY")))
        except KeyError:
            raise _error("unknown entity type", place) from None
        if entity not in entities.FAMILY_OF:
            raise _error("this names a family of types; name one type of it", place)
        return _words(item["text"], place), entity
    return _words(item, place), "DENY"


def _subject(item: Any, place: str) -> Subject:
    if not isinstance(item, dict):
        return Subject(_words(item, place))
    if set(item) - {"name", "also", "parts"} or "name" not in item:
        raise _error("a subject has the keys name, also and parts", place)
    also = item.get("also") or []
    if not isinstance(also, list) or not isinstance(item.get("parts", True), bool):
        raise _error("also is a list of names, parts is true or false", place)
    return Subject(
        _words(item["name"], place), tuple(_words(a, place) for a in also), item.get("parts", True)
    )


def _error(message: str, place: str) -> PolicyError:
    return PolicyError(
        message, next_step="see the word lists in the README for the form of the file", place=place
    )


def load(settings: TaggerSettings) -> ListTagger | None:
    """The tagger for `settings.lists`; None if the policy names no file."""
    return ListTagger(read(settings.lists)) if settings.lists else None
