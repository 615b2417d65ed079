"""Which language a paragraph is written in, told by its function words.

Rules that rely on English spelling must not read German, and a document in a language that
no name tagger knows must not pass as one without names.
"""

from __future__ import annotations

import re
from functools import lru_cache

# Words that are frequent in one language and rare in the others listed here.
FUNCTION_WORDS: dict[str, frozenset[str]] = {
    "en": frozenset(
        "the and of to is was that for with his her on by are were be this which from had has have not it he she they "
        "at an or as but who would been their will said when there we you your my our if about into than its did can could".split()
    ),
    "es": frozenset(
        "el los las del y una que por con para su sus al se como más pero fue era está este esta desde hasta años sobre "
        "también ha había sin muy según paciente presenta lo le donde cuando entre ser nos".split()
    ),
    "fr": frozenset(
        "le les des du et une est dans pour par sur au aux avec que qui pas ce cette ses sont été était ont leur plus nous "
        "vous il elle ils elles mais ou où même comme à être fait lui mon ma notre votre".split()
    ),
    "de": frozenset(
        "der die das und ist nicht mit den dem des ein eine einer eines einem auf für von zu im sich auch als wird wurde war "
        "sind er sie es ich wir bei nach aus am zum zur oder aber hat haben werden durch über vor noch nur wie".split()
    ),
    "da": frozenset(
        "og det at en er den til af på som med for de der ikke har han hun jeg vi et om var fra kan også men blev skal efter "
        "ved hvor når være havde ham hende sin sit mig dig os nu så".split()
    ),
    # Served by no rule: named here so that their paragraphs are seen to be foreign.
    "nl": frozenset("het een van niet dat zijn voor ook maar bij deze naar wordt werd hij zij ik wij uit aan heeft hebben".split()),
    "it": frozenset("il gli della dei che non una sono con per di anche alla nel più come questo essere suo sua è stato dal delle".split()),
    "pt": frozenset("os as um uma não com para do da dos das em no na seu sua mais foi são ao pelo pela também ele ela isso está".split()),
    "sv": frozenset("och att det som är på av för med inte den har jag till var om vi han hon men ett från kan också efter när".split()),
    "pl": frozenset("nie się na jest że do to jak co ale za od przez po tym był była są jego jej oraz dla przy które który".split()),
}  # fmt: skip
_WORD = re.compile(r"[^\W\d_]+")
_FEW = 4  # function words that must be seen before a guess is made
_NON_LATIN = re.compile(
    r"[\u0370-\u052f\u0590-\u06ff\u0900-\u0fff\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)


@lru_cache(maxsize=1)
def _owners() -> dict[str, tuple[str, ...]]:
    table: dict[str, tuple[str, ...]] = {}
    for code, words in FUNCTION_WORDS.items():
        for word in words:
            table[word] = (*table.get(word, ()), code)
    return table


def guess(text: str) -> str | None:
    """Code of the language of `text`; "other" for a script that is not Latin; None if unsure.

    The best language must have at least four function words, three of them different, and a
    third more than the next.
    """
    if len(_NON_LATIN.findall(text[:2000])) * 3 > len(text[:2000]):
        return "other"
    owners = _owners()
    counts: dict[str, float] = {}
    seen: dict[str, set[str]] = {}
    for word in _WORD.findall(text.lower()):
        codes = owners.get(word)
        if codes:
            share = 1.0 / len(codes)
            for code in codes:
                counts[code] = counts.get(code, 0.0) + share
                seen.setdefault(code, set()).add(word)
    if not counts:
        return None
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    code, best = ranked[0]
    second = ranked[1][1] if len(ranked) > 1 else 0.0
    sure = best >= _FEW and len(seen[code]) >= _FEW - 1 and best >= 1.33 * second
    return code if sure else None


def paragraphs(text: str) -> list[tuple[int, int]]:
    """(start, end) of the stretches between blank lines, in order, without gaps."""
    out = []
    start = 0
    for gap in re.finditer(r"\n[ \t]*\n\s*", text):
        out.append((start, gap.end()))
        start = gap.end()
    if start < len(text):
        out.append((start, len(text)))
    return out


NAMES = {
    "en": "English", "es": "Spanish", "fr": "French", "de": "German", "da": "Danish",
    "nl": "Dutch", "it": "Italian", "pt": "Portuguese", "sv": "Swedish", "pl": "Polish",
    "other": "a script that is not Latin",
}  # fmt: skip


def accepted(setting: str) -> frozenset[str]:
    """The languages of a policy's `tagger.language`: one code, or several as in `en,fr`."""
    return frozenset(code.strip().lower() for code in setting.split(",") if code.strip())


def gaps(text: str, setting: str, covered: tuple[str, ...] = ("en",)) -> tuple[str, ...]:
    """One public sentence for each language of a paragraph of `text` that goes unread.

    covered: what the name taggers that run were made for. A language that the policy names
    is taken as the owner's word that rules are enough there; `any` takes every language.
    Paragraphs are numbered from 1; one whose language cannot be told is no gap.
    """
    fine = accepted(setting) | set(covered)
    if "any" in fine:
        return ()
    first: dict[str, int] = {}
    for number, (start, end) in enumerate(paragraphs(text), 1):
        code = guess(text[start:end])
        if code and code not in fine:
            first.setdefault(code, number)
    whole = guess(text)
    if whole and whole not in fine:
        first.setdefault(whole, 1)
    return tuple(
        f"no name tagger reads {NAMES.get(code, code)} (first in paragraph {number}); if rules "
        f"are enough there, add it to tagger.language, or say language: any"
        for code, number in first.items()
    )
