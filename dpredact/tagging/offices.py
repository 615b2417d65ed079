"""Organisations that every state has, and laws: names that tell nobody's secrets.

A name finder calls "the Supreme Court", "the Turkish Government" and "the Vaccination Act"
organisations. A reader learns from them neither where a person lives nor for whom she
works. With a town, a surname or a number in the name ("the Ankara Administrative Court",
"the Fifth Acme Office") they are left to the tagger.
"""

from __future__ import annotations

import re

_WORDS = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")

# A name made of these words alone is an office as such.
_OFFICES = frozenset(
    """the a an of and for in on to at its by under with no or first second third fourth fifth
    grand supreme high higher superior administrative constitutional appeal appeals appellate
    cassation military civil criminal commercial labour social insurance juvenile family martial
    regional region district county city town local municipal municipality municipalities
    provincial court courts tribunal tribunals chamber chambers section registry registrar bench
    division panel jury senate congress parliament parliamentary assembly house houses lords
    commons representatives council councils commission committee cabinet government governments
    governor state states federal federation national general central public principal chief
    prosecutor prosecutors prosecution office offices attorney minister ministers ministry
    ministries department departments directorate board agency authority authorities body bodies
    inspectorate inspector building service services servants foreign affairs home interior
    internal justice finance treasury revenue defence health education employment economy
    environment agriculture transport tax land immigration police army navy force forces security
    prison university hospital school president vice-president secretary deputy union republic
    kingdom commonwealth crown european international united nations human rights convention
    rules law laws act code article articles facts procedure protocol chapter bar supervisory
    legal inter alia benefits benefit commanding officer inland""".split()
)
_PLACE_IN_A_LAW = re.compile(r"^(?:[Aa]rticle |[Rr]ule |[Ss]ection |§ ?)?\d{1,4} (?=of )")
_GOVERNMENTS = frozenset({"government", "governments"})
_LAWS = frozenset(
    {"act", "acts", "code", "convention", "treaty", "protocol", "regulation", "regulations", "law"}
)


def public(name: str) -> bool:
    """Is this an office as such, a government, or a law, rather than one organisation?

    Edges: a digit in the name -> False, it may tell which one · no word at all -> False
    """
    name = _PLACE_IN_A_LAW.sub("", name)
    words = [w.lower() for w in _WORDS.findall(re.sub(r"[’']s\b", "", name))]
    if not words or any(c.isdigit() for c in name):
        return False
    return (
        words[-1] in _GOVERNMENTS
        or (len(words) > 1 and words[-1] in _LAWS)
        or all(w in _OFFICES for w in words)
    )
