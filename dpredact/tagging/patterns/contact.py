"""E-mail addresses, links, network addresses and user names."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain

from dpredact.tagging import lexicon
from dpredact.tagging.patterns.anchors import DIGITS, anchored
from dpredact.tagging.patterns.interface import Hit, Reading, hits

_EMAIL = re.compile(
    r"(?<![\w.+-])[\w](?:[\w.%'’+-]{0,62}[\w+-])?@"
    r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.)+(?:xn--[a-z0-9-]{2,59}|[^\W\d_]{2,63})(?![\w-]|@)"
)
_TLD = r"(?:com|org|net|edu|gov|info|example|io|co|eu|uk|us|ca|au|de|at|ch|fr|es|dk|nl|be|it|se|no|fi|pl|pt|ie)"
_SPELLED = re.compile(
    r"(?<![\w.])[\w.+-]+ ?(?:[\[({<] ?(?:at|AT|@|arroba|arobase) ?[\])}>]| (?:AT|at) (?=[\w-]+ (?:dot|DOT) )) ?"
    r"[\w-]+(?:(?: ?[\[({<] ?(?:dot|DOT|punkt|punto|point|\.) ?[\])}>] ?| (?:dot|DOT) |\.)[\w-]+)+"
)
_LINK = anchored(
    r"(?i)\b(?:(?:https?|ftps?|sftp|ssh)://(?=\S*[\w/])|www\d?\.)[^\s<>\"'“”«»]+",
    "http ftp sftp ssh www",
)
_HOST = re.compile(
    rf"(?<![\w@./-])(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+{_TLD}(?:/[^\s<>\"']*)?(?![\w.@-]*\w)"
)
_DOTTED = re.compile(rf"[a-z0-9]\.{_TLD}\b")
_IP4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?:/\d{1,2})?(?![\w]|\.\d)")
_IP6 = re.compile(r"(?<![\w:.])(?=[0-9A-Fa-f]*:[0-9A-Fa-f:]*:)[0-9A-Fa-f:]{2,39}(?:\.\d+){0,3}(?![\w:])")
_VERSION = re.compile(r"(?i)(?:version|release|section|chapter|clause|rev|v|§)\.? ?$")
_MAC = re.compile(
    r"(?<![\w:.-])(?:[0-9A-Fa-f]{2}([:-])(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}"
    r"|[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4})(?![\w:-])"
)
_HANDLE = re.compile(r"(?<![\w@/.])@(?P<x>[A-Za-z_][\w.]{2,29})(?<!\.)(?![\w(=])")
_NOT_A_PERSON = frozenset(
    "media import param return returns override charset keyframes font page supports everyone "
    "here channel all property staticmethod classmethod test deprecated throws see author since".split()
)
_USER = anchored(
    r"(?i)\b(?:user ?name|user ?id|login|log-in|screen name|handle|nick(?:name)?|usuario|"
    r"identifiant|benutzername|brugernavn)\b ?(?:is |: ?|= ?)[\"']?(?P<x>[\w.@-]{3,40}\b)",
    "user login log-in screen_name handle nick usuario identifiant benutzername brugernavn",
)


def find(reading: Reading) -> Iterator[Hit]:
    text = reading.text
    if "@" in text:
        for low, high in _around(text, "@", 70):
            yield from hits(_EMAIL.finditer(text, low, high), "EMAIL", 0.98, "email")
            for hit in hits(_HANDLE.finditer(text, low, high), "USERNAME", 0.7, "handle"):
                if text[hit.start : hit.end].lower() not in _NOT_A_PERSON:
                    yield hit
    for mark in _SPELLED_MARKS:
        if mark in reading.flat:
            yield from hits(_SPELLED.finditer(text), "EMAIL", 0.8, "email spelled out")
            break
    yield from _links(reading)
    yield from _network(reading)
    yield from hits(reading.anchored(_USER), "USERNAME", 0.75, "user name after a label")
    yield from _nicks(reading)


_SPELLED_MARKS = ("(at", "[at", "{at", "<at", "( at", "[ at", " dot ", "(@", "[@", "arroba", "arobase")


def _around(text: str, mark: str, reach: int) -> Iterator[tuple[int, int]]:
    """Disjoint stretches of whole words around each `mark`."""
    done = 0
    at = text.find(mark)
    while at >= 0:
        low = max(done, text.rfind(" ", max(0, at - reach), at) + 1, text.rfind("\n", max(0, at - reach), at) + 1, at - reach)
        high = at + 1
        while high < len(text) and not text[high].isspace():
            high += 1
        yield low, high
        done = high
        at = text.find(mark, high)


# Names that people give themselves: MarieC_55, john.brown7, JohnResearcher62.
_NICK = re.compile(r"(?<![\w@./#-])[A-Za-z][A-Za-z]*(?:[_.]?[A-Za-z0-9]+){0,4}(?![\w@/-]|\.\w)")
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def _nicks(reading: Reading) -> Iterator[Hit]:
    """Words of letters with digits or underscores that begin with a given name or hold two names."""
    for match in chain(reading.near(DIGITS, _NICK), _around_mark(reading, "_")):
        word = match[0]
        if not (any(c.isdigit() for c in word) or "_" in word) or word.isupper():
            continue
        parts = [p.lower() for p in _PART.findall(word) if len(p) > 2]
        given = bool(parts) and parts[0] in lexicon.first_names() and len(parts[0]) > 3
        if (given and not lexicon.is_common(parts[0])) or (word[-1].isdigit() and parts and _glued(parts[0])):
            yield Hit(match.start(), match.end(), "USERNAME", 0.65, "nickname made of a name")


@lru_cache(maxsize=20_000)
def _glued(word: str) -> bool:
    """Is this a given name and a surname written together (johndoe)?"""
    first, last = lexicon.first_names(), lexicon.surnames()
    return not lexicon.is_common(word) and any(
        word[:i] in first and (word[i:] in last or word[i:] in first) for i in range(4, len(word) - 2)
    )


def _around_mark(reading: Reading, mark: str) -> Iterator[re.Match[str]]:
    for low, high in _around(reading.text, mark, 40):
        yield from _NICK.finditer(reading.text, low, high)


def _links(reading: Reading) -> Iterator[Hit]:
    text = reading.text
    for match in reading.anchored(_LINK):
        end = match.end()
        while text[end - 1] in ".,;:!?)]}*_" and end > match.start() + 1:
            end -= 1
        yield Hit(match.start(), end, "URL", 0.9, "link")
    for dot in _DOTTED.finditer(text):  # a blank on neither side: most full stops are not meant
        low = dot.start() + 1
        while low and not text[low - 1].isspace():
            low -= 1
        if match := _HOST.search(text, low, len(text) if dot.end() == len(text) else dot.end() + 80):
            if match.start() <= dot.start() < match.end():
                yield Hit(match.start(), match.end(), "URL", 0.6, "host name")


def _network(reading: Reading) -> Iterator[Hit]:
    text = reading.text
    for match in reading.near(DIGITS, _IP4):
        if _is_address(match[0]) and not _VERSION.search(reading.before(match.start(), 12)):
            yield Hit(match.start(), match.end(), "IP", 0.9, "IPv4 address")
    if ":" in text:
        for match in reading.on_lines(_IP6, ":"):
            if len(match[0]) > 4 and _is_address(match[0]):
                yield Hit(match.start(), match.end(), "IP", 0.9, "IPv6 address")
        yield from hits(reading.on_lines(_MAC, ":"), "MAC", 0.95, "MAC address")
    yield from hits(reading.near(DIGITS, _MAC), "MAC", 0.95, "MAC address")


def _is_address(words: str) -> bool:
    try:
        ipaddress.ip_interface(words)
    except ValueError:
        return False
    return True
