"""What kind of word a word is: the evidence on which names are told from other words."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from dpredact.tagging import lexicon

PARTICLES = frozenset("de del della di da dos das du van von der den ter ten zu zur bin ibn al el la le y af av e".split())
MONTHS = frozenset("january february march april may june july august september october november december".split())
_DAYS = frozenset("monday tuesday wednesday thursday friday saturday sunday".split())
# Capitalised words that head an organisation or a place, never a person.
HEADS = frozenset(
    "street road avenue lane drive court hospital clinic university college school academy institute bank council "
    "committee commission ministry department office agency authority association society foundation federation union "
    "party company group holdings partners services solutions systems technologies industries international church "
    "county city district region province state republic river lake park bridge station airport square building house "
    "hall museum library theatre theater act law code convention treaty agreement article section chapter prize award "
    "club team league cup games olympics paralympics tournament festival press times news journal magazine post gazette center centre laboratory "
    "tribunal parliament senate assembly board bureau service police force army navy prison regiment division inc ltd llc "
    "gmbh corp plc ag sa srl aps bv nv limited incorporated corporation trust fund insurance airlines hotel restaurant "
    "software app phone edition model series version system project program programme plan".split()
)
# What people do: after a word at the start of a sentence, one of these makes it a person.
VERBS = frozenset(
    "said says asked asks told tells wrote writes replied replies answered called calls met meets went goes came comes "
    "left leaves took takes gave gives sent sends brought brings bought sold paid pays signed signs agreed agrees refused "
    "refuses wants wanted needs needed likes liked loves loved hates knows knew thinks thought believes believed feels felt "
    "lives lived works worked moved moves arrived arrives returned returns visited visits stayed stays started starts began "
    "presented presents seconded proposed reported reports confirmed confirms noted notes added adds explained explains "
    "denied denies admitted admits complained complains suffers suffered attended attends joined joins resigned retired "
    "married died born was is has had does did cannot can will would could should won't didn't doesn't isn't wasn't hasn't "
    "set put got gets made makes saw sees heard hears found finds ran runs drove drives ate sat sits stood stands spoke "
    "speaks thanked thanks helped helps tried tries used uses booked ordered orders cancelled requested requests received "
    "mentioned mentions offered offers promised promises decided decides plans planned hopes hoped laughed smiled nodded "
    "cried shouted whispered waited waits looked looks turned walked walks picked dropped fixed owns owned teaches taught "
    "studied studies plays played won lost sings sang remembers remembered forgot forgets handed emailed phoned rang rings "
    "texted forwarded approved reviewed submitted filed claims claimed alleges alleged states stated testified appealed".split()
)
_STOP = frozenset(
    "i you he she it we they me him her us them this that these those there here who what when where why how which "
    "the a an and or but if so as at by for from in into of off on onto to with about after before "
    "yes no ok okay please thanks thank hello hi hey dear hallo regards sincerely cheers best kind sir madam mum dad mom "
    "al ante tras con sin el la le los las les der die das den dem des ein eine und et un une der og det en de du il elle lui por para con por si su sin sur son sa ses ich wir sie er es jeg han hun vi "
    "not all any both each more most other some such only own same too very just also now then than".split()
)


@dataclass(frozen=True)
class Token:
    """One word of the text and what the lists know about it. Holds words; not printed."""

    start: int
    end: int
    word: str = field(repr=False)
    kinds: frozenset[str]  # see `kinds_of`
    first: bool  # is it where a sentence, line or list item starts?

    def __contains__(self, kind: str) -> bool:
        return kind in self.kinds


class Tokens:
    """The words of one paragraph, looked up only when somebody asks for one."""

    def __init__(self, text: str, words: list[tuple[int, int, str]]) -> None:
        self.text = text
        self._words = words
        self._made: dict[int, Token] = {}

    def __len__(self) -> int:
        return len(self._words)

    def capitals(self) -> list[int]:
        """Indices of the words with a capital."""
        return [i for i, (_, _, word) in enumerate(self._words) if word[0].isupper()]

    def lower(self) -> set[str]:
        """The different words in lower case."""
        return {word for _, _, word in self._words if word[0].islower()}

    def where(self, words: set[str]) -> list[int]:
        return [i for i, (_, _, word) in enumerate(self._words) if word in words]

    def __getitem__(self, index: int) -> Token:
        if index not in self._made:
            start, end, word = self._words[index]
            if word.endswith(("'s", "’s")):
                word, end = word[:-2], end - 2
            gap = self.text[self._words[index - 1][1] if index else 0 : start]
            first = not index or (gap not in (" ", "-", "'", "’") and _STARTS.search(gap) is not None)
            self._made[index] = Token(start, end, word, kinds_of(word), first)
        return self._made[index]

    def part(self, start: int, end: int) -> list[Token]:
        return [self[i] for i in range(max(0, start), min(end, len(self)))]


_CONTRACTION = re.compile(r"n't$|'(?:ve|ll|re|d|m)$")
# McKenna, MacLeod, O'Brien, DeShawn, Aldwick-Stone: capitals inside a name.
_CAMEL = re.compile(r"[^\W\d_](?:[^\W\d_A-Z]{1,3}|['’])[^\W\d_][^\W\d_A-Z]{2,}|[^\W\d_]+(?:[-‑'’][^\W\d_]+)+")
_PEOPLES = frozenset(
    "english french german dutch greek swiss welsh scots irish spanish danish swedish norwegian finnish polish russian turkish "
    "kurdish arab arabic hebrew jewish islam muslim christian hindu catholic protestant orthodox bible koran quran christ god "
    "american british european african asian indian chinese japanese italian portuguese internet web".split()
)
# Endings of diseases, drugs and procedures: words that few dictionaries list in full.
_TECHNICAL = re.compile(
    r"(?:itis|osis|oses|a?emias?|algias?|opath(?:y|ies)|ectomy|oscopy|ogram|ograph[yics]*|ometry|oma|omas|pril|statin|sartan|olol|azole|"
    r"mycin|cillin|cycline|dipine|zepam|zolam|mab|vir|floxacin|caine|codone|tinib|megaly|o?edema|plasty|uria|penia|cytes?|genic|"
    r"genesis|amine|idine|phylaxis|lysis|rrhea|rrhoea|tropic|metformin|glutide|gliptin|triptan|setron|oxetine)s?$"
)


@lru_cache(maxsize=50_000)
def kinds_of(word: str) -> frozenset[str]:
    """given, surname, common, frequent, rare, place, proper, head, month, stop, initial, capital,
    lower, upper, unknown (in no list) of a word as written."""
    plain = lexicon.plain(word)
    parts = re.split(r"['’‑-]", plain) if not plain.isalpha() else [plain]
    kinds = set()
    rank = lexicon.common().get(plain)
    if rank is None and lexicon.is_common(plain):
        rank = 10_000
    if rank is not None:
        kinds |= {"common"} | ({"frequent"} if rank < 1500 else {"rare"} if rank > 12_000 else set())
    if _CONTRACTION.search(plain):
        return frozenset({"stop", "common", "capital" if word[0].isupper() else "lower"})
    if plain in lexicon.first_names() or ("'" not in plain and len(parts) == 2 and parts[0] in lexicon.first_names()):
        kinds.add("given")
    if plain in lexicon.surnames() or any(p in lexicon.surnames() and len(p) > 2 for p in parts[1:]):
        kinds.add("surname")
    for name, words in (("head", HEADS), ("month", MONTHS), ("stop", _STOP), ("day", _DAYS)):
        if plain in words:
            kinds.add(name)
    if plain in lexicon.places():
        kinds.add("place")
    if plain in _PEOPLES or plain in lexicon.proper() or plain.rstrip("s") in lexicon.proper():
        kinds.add("proper")
    if len(word) == 1:
        kinds.add("initial")
    kinds.add("capital" if word[0].isupper() else "lower")
    if len(word) > 1 and (word.isupper() or (sum(c.isupper() for c in word) > 1 and not _CAMEL.fullmatch(word))):
        kinds.add("upper")
    if len(plain) > 6 and _TECHNICAL.search(plain) and not kinds & {"given", "surname"}:
        kinds.add("proper")
    if not kinds & {"common", "given", "surname", "place", "proper", "head", "month", "stop", "day", "initial"}:
        # Unknown compounds of known words (self-employed) are words.
        kinds.add("common" if len(parts) > 1 and all(lexicon.is_common(p) for p in parts) else "unknown")
    return frozenset(kinds)


_STARTS = re.compile(r"(?:^|[\n.!?:;\t|•*>“\"(\[-])[\s*_>#“\"'(\[]*(?:\d{1,3}[.)]\s+)?$")
