"""People's names, found by the words around them and by lists of names.

Three sources of evidence, weakest last: labels and phrases that announce a name ("Patient:",
"my name is", "Dear"), the shape of a run of words (given name + surname, initials), and what
stands next to a single word ("Tovin said", "belongs to Tovin", "Rose's"). A word that is in no
dictionary counts as a possible name in English text only: elsewhere everything would be one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from dpredact.tagging import lexicon
from dpredact.tagging.patterns import name_phrases
from dpredact.tagging.patterns.interface import Hit, Reading
from dpredact.tagging.patterns.tokens import PARTICLES, VERBS, Token, Tokens, kinds_of

_DETERMINERS = frozenset(
    "the a an this that these those each every some any no my your his her its our their another "
    "one two three four five six seven eight nine ten both new old of-the".split()
)
# After these a capitalised unknown word is somebody: to Tovin, with Ilse, by Perrin.
_TOWARDS = frozenset(
    "to by with from for about ask asked tell told call called ring contact contacted meet met "
    "thank thanks see saw invite invited email emailed phone phoned text texted message messaged hire hired "
    "named called remind reminded help helped visit visited but cc dear hi hello hey".split()
)
# Barrett's oesophagus belongs to no Barrett.
_EPONYMOUS = frozenset(
    "test tests sign disease syndrome criteria law laws theorem method procedure score scale index classification sarcoma lymphoma palsy "
    "oesophagus esophagus fracture tumor tumour anaemia anemia thyroiditis chorea ataxia phenomenon reflex rule equation correction distance "
    "coefficient number constant principle paradox razor dilemma algorithm inequality knife operation contracture tendon manoeuvre maneuver".split()
)
# Verbs in a form that only somebody can be in front of: "Will gave", but not "Will set".
_FINITE = frozenset("said says asked told wrote gave went came took brought met knew thought replied agreed spoke saw".split())
_AMOUNT = re.compile(r" ?\d|\(\d")
_MONTH_THINGS = frozenset(
    "weather figures results report meeting election elections issue edition total sales numbers data deadline rain "
    "budget payroll newsletter invoice statement minutes target targets schedule".split()
)


def find(reading: Reading) -> Iterator[Hit]:
    yield from name_phrases.find(reading)
    words, low = reading.words, 0
    for _, end, code in reading.paragraphs:
        high = low
        while high < len(words) and words[high][0] < end:
            high += 1
        for hit in runs(Tokens(reading.cased, words[low:high]), english=code in (None, "en")):
            if hit.score > _WEAK or not _thing(reading, hit):
                yield hit
        low = high


_WEAK = 0.65


def _thing(reading: Reading, hit: Hit) -> bool:
    """Does the text elsewhere speak of this unknown word with an article (the Freewinds)?"""
    word = reading.flat[hit.start : hit.end]
    if " " in word or word in lexicon.first_names():
        return False
    return word in reading.with_article


def runs(tokens: Tokens, english: bool = True) -> Iterator[Hit]:
    """Names among the runs of capitalised words of one paragraph."""
    done = 0
    for at in tokens.capitals():
        if at < done or "stop" in tokens[at]:
            continue
        done = _run(tokens.text, tokens, at)
        yield from _judge(tokens.text, tokens, at, done, english)
    if english:
        yield from _lower_pairs(tokens.text, tokens)


def _run(text: str, tokens: Tokens, at: int) -> int:
    """Index behind the run of capitalised words (and particles between) that starts at `at`."""
    end = at + 1
    while end < len(tokens):
        gap = text[tokens[end - 1].end : tokens[end].start]
        if not (gap == " " or (gap in (". ", ".") and "initial" in tokens[end - 1])):
            break
        if "capital" in tokens[end] and "stop" not in tokens[end]:
            end += 1
        elif (
            tokens[end].word in PARTICLES
            and end + 1 < len(tokens)
            and ("capital" in tokens[end + 1] or tokens[end + 1].word in PARTICLES)
            and text[tokens[end].end : tokens[end + 1].start] == " "
        ):
            end += 1
        else:
            break
    while tokens[end - 1].word in PARTICLES and end - 1 > at:
        end -= 1
    return end


def _judge(text: str, tokens: Tokens, at: int, end: int, english: bool) -> Iterator[Hit]:
    """Which words of the run are a name. An ordinary word with a capital at the start of a
    sentence ("Ring Perrin …") is left out."""
    run = tokens.part(at, end)
    if any("head" in t and "given" not in t for t in run):
        return
    while len(run) > 1 and _ordinary(run[0]):
        run, at = run[1:], at + 1
    while len(run) > 1 and _ordinary(run[-1]) and "surname" not in run[-1]:
        run, end = run[:-1], end - 1
    if len(run) == 1:
        hit = _single(text, tokens, at, english)
    else:
        hit = _several(text, tokens, at, end, english)
    if hit:
        yield hit


def _ordinary(token: Token) -> bool:
    if "given" in token or ("rare" in token and "surname" not in token):
        return False
    return bool(token.kinds & {"common", "month", "day", "proper"})


def _several(text: str, tokens: Tokens, at: int, end: int, english: bool) -> Hit | None:
    run = tokens.part(at, end)
    named = [t for t in run if t.word not in PARTICLES]
    lead, tail = named[0], named[-1]
    if all("upper" in t for t in named) and not ("given" in lead and "surname" in tail):
        return None  # acronyms: lines of capitals read like prose by now
    start, stop = run[0].start, run[-1].end
    if all("place" in t or "proper" in t for t in named if "initial" not in t) and not (
        "given" in lead and "surname" in tail
    ):
        return None
    plain = "common" not in lead and "month" not in lead
    if "given" in lead and plain:
        if tail.kinds & {"surname", "unknown", "initial", "given"} or "common" not in tail:
            return Hit(start, stop, "PERSON", 0.85, "given name and more")
    if "given" in lead and tail.kinds & {"surname", "unknown"} and "common" not in tail:
        return Hit(start, stop, "PERSON", 0.75, "given name and surname")
    if "given" in lead and "surname" in tail and len(named) == 2 and not _titled(text, start, stop):
        acts = end < len(tokens) and tokens[end].word in VERBS
        if not lead.first or acts or text[tail.end : tail.end + 1] in (",", "."):
            return Hit(start, stop, "PERSON", 0.7, "given name and surname that are words, too")
    if "initial" in lead and tail.kinds & {"surname", "unknown", "given"}:
        if text[lead.end : lead.end + 1] == "." or "common" not in tail:
            return Hit(start, stop, "PERSON", 0.8, "initials and surname")
    if "initial" in tail and not _ordinary(lead) and len(named) == 2:
        return Hit(start, stop, "PERSON", 0.7, "name and initial")
    if "surname" in tail and lead.kinds & {"unknown"} and english:
        return Hit(start, stop, "PERSON", 0.7, "unknown word and surname")
    if "surname" in lead and "given" in tail and "common" not in lead:
        return Hit(start, stop, "PERSON", 0.7, "surname and given name")
    if english and all(_nameable(t) for t in named) and any("unknown" in t or "surname" in t for t in named):
        if not _determined(text, tokens, at):
            return Hit(start, stop, "PERSON", 0.6, "capitalised words that are in no dictionary")
    return None


def _nameable(token: Token) -> bool:
    """In no dictionary, or only in the corner of one (Jonquil, Kestrel)."""
    if "common" in token:
        return "rare" in token
    return bool(token.kinds & {"unknown", "surname", "given", "initial"})


def _determined(text: str, tokens: Tokens, at: int) -> bool:
    if at == 0 or text[tokens[at - 1].end : tokens[at].start] != " ":
        return False
    return tokens[at - 1].word.lower() in _DETERMINERS


def _single(text: str, tokens: Tokens, at: int, english: bool) -> Hit | None:
    token = tokens[at]
    if len(token.word) < 2 or "upper" in token or _determined(text, tokens, at):
        return None  # capitals in ordinary lines are acronyms: lines of capitals read like prose by now
    if "day" in token or (token.kinds & {"stop", "head"} and "given" not in token):
        return None
    if _AMOUNT.match(text, token.end):
        return None  # a drug or a unit: Norvasc 5 mg
    following = tokens[at + 1] if at + 1 < len(tokens) and text[token.end : tokens[at + 1].start] == " " else None
    owner = text.startswith(("'s ", "’s "), token.end)
    if owner and at + 1 < len(tokens) and tokens[at + 1].word.lower() in _EPONYMOUS:
        return None
    if "given" in token and not token.kinds & {"common", "month", "place", "proper"}:
        return Hit(token.start, token.end, "PERSON", 0.7, "given name")
    if not english:
        return None
    if token.kinds & {"place", "proper"} and "given" not in token:
        return None
    acts = following is not None and following.word in VERBS
    before = tokens[at - 1].word.lower() if at and text[tokens[at - 1].end : token.start] == " " else ""
    if before in ("and", "or") and at > 1 and "capital" in tokens[at - 2] and not _ordinary(tokens[at - 2]):
        before = "with"  # Aurelio and Nim
    if not token.kinds & {"common", "month", "place", "proper"}:
        return _unlisted(text, token, following, owner, acts, before)
    if "given" in token:
        return _ambiguous(text, token, tokens, at, owner, acts, before)
    return None


def _unlisted(
    text: str, token: Token, following: Token | None, owner: bool, acts: bool, before: str
) -> Hit | None:
    """A single word that is in no dictionary, or only in the list of surnames or places."""
    if owner or acts:
        return Hit(token.start, token.end, "PERSON", 0.65, "name that owns or does something")
    compound = following is not None and following.kinds & {"lower"} and following.kinds & {"common"} and "stop" not in following
    if before in _TOWARDS and not compound:
        return Hit(token.start, token.end, "PERSON", 0.6, "unknown word after 'to', 'with' and the like")
    ends = text[token.end : token.end + 1]
    if (token.kinds & {"unknown", "surname"}) and not compound and "place" not in token and ends in ("?", "!", ",", ".", "") and not token.first:
        return Hit(token.start, token.end, "PERSON", 0.55, "capitalised word that is in no dictionary")
    if token.first and ends in ("?", "!", ","):
        return Hit(token.start, token.end, "PERSON", 0.55, "somebody who is spoken to")
    return None


def _ambiguous(
    text: str, token: Token, tokens: Tokens, at: int, owner: bool, acts: bool, before: str
) -> Hit | None:
    """A given name that is also an ordinary word or a month: only where it cannot be that."""
    after = tokens[at + 1].word if at + 1 < len(tokens) else ""
    if owner and not ("month" in token and after in _MONTH_THINGS) and not ("frequent" in token and token.first):
        return Hit(token.start, token.end, "PERSON", 0.65, "given name that owns something")
    if token.first and acts and ("frequent" not in token or after in _FINITE) and after not in ("is", "was", "can", "will", "would", "has", "had"):
        return Hit(token.start, token.end, "PERSON", 0.6, "given name that does something")
    if "month" in token or token.first:
        return None
    if before in _TOWARDS or acts or text[token.end : token.end + 1] in (",", ".", "?", "!", ";"):
        if not _titled(text, token.start, token.end):
            return Hit(token.start, token.end, "PERSON", 0.6, "given name with a capital inside a sentence")
    return None


def _titled(text: str, start: int, end: int) -> bool:
    """Is [start, end) in a heading, where the ordinary words around it have capitals, too?"""
    low = text.rfind("\n", 0, start) + 1
    high = text.find("\n", end)
    around = text[low:start] + text[end : high if high >= 0 else len(text)]
    words = re.findall(r"[^\W\d_]{4,}", around)
    return len(words) >= 2 and sum(w[0].isupper() for w in words) * 2 > len(words)


def _lower_pairs(text: str, tokens: Tokens) -> Iterator[Hit]:
    """Two or three words in lower case that are in no dictionary, in a sentence of words that are."""
    done = 0
    for at in tokens.where({word for word in tokens.lower() if _strange(word)}):
        if at < done:
            continue
        end = at + 1
        while end < len(tokens) and text[tokens[end - 1].end : tokens[end].start] == " ":
            middle = len(tokens[end].word) == 1 and end + 1 < len(tokens) and _strange(tokens[end + 1].word)
            if not middle and not _strange(tokens[end].word):
                break
            end += 1
        done = end
        if 2 <= end - at <= 4 and _known_around(tokens, at, end):
            run = tokens.part(at, end)
            if any(t.kinds & {"given", "surname"} for t in run) or _after_trigger(tokens, at):
                yield Hit(run[0].start, run[-1].end, "PERSON", 0.65, "name in lower case")


@lru_cache(maxsize=50_000)
def _strange(word: str) -> bool:
    """Is this a word in lower case that English does not know?"""
    return (
        len(word) >= 3
        and word.isalpha()
        and word.islower()
        and not kinds_of(word) & {"common", "stop", "proper", "head", "place"}
        and any(c in "aeiouyäöüåøæé" for c in word)
        and not _ADJECTIVE.search(word)
    )


_ADJECTIVE = re.compile(r".{4}(?:al|ar|ic|ous|oid|ary|ive|able|ible|tion|sion|ment|ness|ity|ism|ists?|ally|ing|ed)$")


def _known_around(tokens: Tokens, at: int, end: int) -> bool:
    near = tokens.part(at - 6, at) + tokens.part(end, end + 6)
    return len(near) >= 3 and sum(bool(t.kinds & {"common", "stop"}) for t in near) * 4 >= 3 * len(near)


def _after_trigger(tokens: Tokens, at: int) -> bool:
    return at > 0 and tokens[at - 1].word.lower() in (_TOWARDS | {"is", "name", "patient", "client", "am", "im"})
