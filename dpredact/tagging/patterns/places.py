"""Streets, postcodes, and towns that the words around them give away."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dpredact.tagging import lexicon
from dpredact.tagging.patterns.anchors import DIGITS, FAR, STREET, anchored
from dpredact.tagging.patterns.interface import Hit, Reading, hits
from dpredact.tagging.patterns.tokens import kinds_of

_CAP = r"[A-ZÀ-ÖØ-Þ][\w'’.-]*"
_NO = r"\d{1,6}[A-Za-z]?(?:[-/]\d{1,4}[A-Za-z]?)?"
_STREET = (
    r"(?:Street|St|Road|Rd|Avenue|Ave|Av|Lane|Ln|Drive|Dr|Court|Ct|Boulevard|Blvd|Way|Place|Pl|Square|Sq|Terrace|"
    r"Ter|Close|Crescent|Cres|Parkway|Pkwy|Highway|Hwy|Row|Walk|Hill|Gardens|Gdns|Grove|Mews|Circle|Cir|Trail|Trl|"
    r"Alley|Path|Pike|Throughway|Turnpike|Loop|Plaza|Rise|Quay|Wharf|Green|Park|View|Ridge|Run|Expressway|Freeway|Route|"
    r"Street|Esplanade|Parade|Promenade|Heights|Broadway|Crossing|Junction|Estate|Causeway|Bypass|Common|Vale|Field|Fields|Manor|Mall)"
)
_UNIT = r"(?:,? ?(?i:Apt|Apartment|Suite|Ste|Unit|Flat|Floor|Fl|Room|Rm|No)\.? ?#?[\w-]+\b|,? #[\w-]+)"
_STATE = (
    r"(?:AL|AK|AZ|AR|CA|CO|CT|DE|FL|GA|HI|ID|IL|IN|IA|KS|KY|LA|ME|MD|MA|MI|MN|MS|MO|MT|NE|NV|NH|NJ|NM|NY|NC|ND|"
    r"OH|OK|OR|PA|RI|SC|SD|TN|TX|UT|VT|VA|WA|WV|WI|WY|DC|PR|AA|AE|AP)"
)
_UK_CODE = r"(?:GIR ?0AA|[A-Z]{1,2}\d[A-Z\d]? ?\d[ABD-HJLNP-UW-Z]{2})"
_TAIL = (
    rf"(?:(?:,| -)?[ \n](?:{_CAP}(?: {_CAP}){{0,2}}),?[ \n](?:{_STATE}(?:,? \d{{5}}(?:-\d{{4}})?)?|{_UK_CODE})\b"
    rf"|,[ \n]?\d{{4,5}} {_CAP}(?: {_CAP})?|,[ \n]?{_UK_CODE}\b"
    rf"|, (?!(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|He\b|She\b|It\b|We\b|They\b|I\b){_CAP}(?: {_CAP})?(?:, {_STATE}\b|(?=[,.;)\n]|$)))"
)
_ENGLISH = re.compile(
    rf"(?<![\w.,/])(?:(?:Apt|Apartment|Suite|Unit|Flat)\.? ?#?[\w-]+,? )?{_NO},? (?:[NSEW]{{1,2}}\.? |North |South |East |West )?"
    # The first word is a name: "34 of the Rules of Court" is no address.
    rf"(?:{_CAP}|\d{{1,3}}(?:st|nd|rd|th)) (?:(?:{_CAP}|of|the|\d{{1,3}}(?:st|nd|rd|th)) ){{0,3}}?(?:{_STREET}|(?<=[a-z] )(?:street|road|avenue|lane|drive|court|boulevard|square|terrace|crescent|parkway|highway|gardens|grove|mews|hill|close|way|place))\b\.?(?: (?:[NSEW]{{1,2}}|North|South|East|West)\b\.?)?"
    rf"{_UNIT}?{_TAIL}?"
)
# Streets of other languages: the language, whether text of an unclear language may be read
# so too, and whether a number must be there.
_OTHERS: tuple[tuple[str, bool, bool, re.Pattern[str]], ...] = (
    ("es", True, False, re.compile(rf"(?<![\w])(?:[Cc]alle|C/|Avda\.?|Avd\.|[Aa]venida|Pza\.?|P\.º|Ctra\.?|Travesía|Urbanización) ?(?:(?:de|del|la|las|los|el|y) |{_CAP} ?){{1,7}}(?:,? ?(?:n\.?[ºo°]\.? ?)?\d{{1,4}}\b|,? ?[sS]/[nN]\b)?(?:,? ?-? ?\d{{1,2}}[ºªoa](?: ?\d{{1,2}}[ºªoa]| [A-Z]\b)?){{0,2}}(?:[.,]? ?(?:E-)?\d{{5}}(?!\d)(?:,? {_CAP})?)?")),
    ("es", False, True, re.compile(rf"(?<![\w])(?:[Pp]laza|[Pp]aseo|[Cc]arretera|[Cc]amino|[Rr]onda) (?:(?:de|del|la|las|los|el|y) |{_CAP} ?){{1,7}},? ?(?:n\.?[ºo°]\.? ?)?\d{{1,4}}\b")),
    ("fr", True, True, re.compile(rf"(?<![\w])\d{{1,4}},? ?(?:(?:bis|ter|[A-Da-d])\b,? ?)?(?:[Rr]ue|[Aa]venue|[Bb]oulevard|[Bb]d|[Pp]lace|[Cc]hemin|[Aa]llée|[Ii]mpasse|[Qq]uai|[Rr]oute|[Cc]ours) (?:(?:de|du|des|d'|d’|la|le|les|l'|l’|aux?|à) ?|{_CAP} ?){{1,6}}(?:, ?\d{{5}} {_CAP})?")),
    ("fr", False, False, re.compile(rf"(?<![\w])(?:[Rr]ue|[Bb]oulevard|[Cc]hemin|[Aa]llée|[Ii]mpasse|[Qq]uai) (?:(?:de|du|des|d'|d’|la|le|les|l'|l’|aux?|à) ?|{_CAP} ?){{1,6}}(?:, ?\d{{5}} {_CAP})?")),
    ("de", True, True, re.compile(rf"(?<![\w])(?:(?:{_CAP}[ -]){{0,3}}[A-ZÄÖÜ][a-zäöüß-]*(?:straße|strasse|str\.|platz|allee|gasse)|(?:{_CAP} )?(?:Straße|Str\.|Platz|Allee|Gasse)) ?\d{{1,4}} ?[a-z]?\b(?:,? ?\d{{5}} {_CAP}(?: {_CAP})?)?")),
    ("de", False, True, re.compile(r"(?<![\w])[A-ZÄÖÜ][a-zäöüß-]{2,}(?:weg|ring|damm|ufer|steig|hof|chaussee) \d{1,4} ?[a-z]?\b")),
    ("da", True, True, re.compile(rf"(?<![\w])(?!Brigade|Renegade)(?:{_CAP} )?[A-ZÆØÅ][a-zæøå]*(?:[a-zæøå]vej|[a-zæøå]gade|allé|stræde|[a-zæøå]plads|vænge|[a-zæøå]torv|[a-zæøå]{{3}}(?:parken|bakken|haven)) \d{{1,4}} ?[A-Z]?\b(?:,? \d{{1,2}}\. ?(?:th|tv|mf|sal)\b\.?(?: (?:th|tv|mf)\b)?)?(?:,? \d{{4}} {_CAP}(?: [A-ZÆØÅ])?)?")),
)  # fmt: skip
_STEMS = {
    "es": ("calle", "c/", "avd", "avenida", "pza", "plaza", "paseo", "carretera", "ctra", "camino", "ronda", "travesia", "urbanizacion"),
    "fr": ("rue", "avenue", "boulevard", "bd ", "place", "chemin", "allee", "impasse", "quai", "route", "cours"),
    "de": ("stra", "str.", "platz", "allee", "gasse", "weg", "ring", "damm", "ufer", "steig", "hof", "chaussee"),
    "da": ("vej", "gade", "all", "stræde", "plads", "vænge", "torv", "parken", "bakken", "haven"),
}  # fmt: skip
_UNIT_ALONE = re.compile(r"(?<![\w-])(?i:apt|apartment|suite|flat)\.? ?(?:#|(?i:no)\.? ?)?\d{1,5}[A-Za-z]?\b(?!-)|(?<![\w-])(?i:unit) \d{1,5},? (?i:box) \d{1,6}\b")
_ZIP_LABEL = re.compile(r"(?i)\b(?:zip(?: ?code)?|post ?code|postal code|plz|código postal|code postal|postnummer)(?: (?:is|was|of))? ?[:=]? ?(?P<x>[A-Z]{0,2}-?\d{3,6}(?:[- ]\d{3,4})?)\b")
_BOX = re.compile(r"\b(?:P\. ?O\. ?|PO |Post Office )(?i:Box) \d{1,6}\b|\b(?:Postfach|Apartado(?: de correos)?|Boîte postale|B\.P\.|Postboks) \d{1,6}\b")
_ZIP = re.compile(rf"\b(?:{_CAP}(?: {_CAP}){{0,2}},? )?{_STATE},? \d{{5}}(?:-\d{{4}})?\b")
_FIRST = re.compile(r"([^\W\d_]+) ")
_DEGREES = frozenset("MD MA PA ME OR IN HI OK DE CO AL MS".split())  # also degrees and words
_TOWN_STATE = re.compile(rf"\b{_CAP}(?: {_CAP}){{0,2}}, {_STATE}\b(?! \d)")
_POSTCODE = re.compile(rf"(?<![\w-]){_UK_CODE}(?![\w-])")
_LABELLED = re.compile(
    r"(?im)(?:^|(?<=[.;,|] )|(?<=\t))[^\w\n]{0,8}(?:(?:home|postal|mailing|billing|shipping|street|work|current|permanent|delivery|registered) )?"
    r"(?:address|dirección|domicilio|adresse|anschrift|wohnhaft|bopæl)(?: (?:line )?\d)? ?[:=] ?(?P<x>[^\n\t|;]{5,120})"
)
_PLACE_LABEL = re.compile(
    r"(?im)(?:^|(?<=[.;,|] )|(?<=\t))[^\w\n]{0,8}(?:city|town|village|place of birth|birth ?place|hometown|location|country|county|state|"
    r"localidad|provincia|ciudad|municipio|país|lugar de nacimiento|ville|lieu de naissance|pays|ort|wohnort|geburtsort|land|by|fødested|kommune|zip(?: ?code)?|postcode|postal code|código postal|c\.?p\.?|plz|postnr\.?)"
    r"(?:/[\w ]+)? ?[:=] ?(?P<x>[^\n\t|;,]{2,60})"
)
_TOWN = r"[A-ZÀ-ÖØ-Þ][\w'’-]*"
_NAME = rf"(?P<x>(?:(?:St|Mt|Ft|Port|San|Santa|New|Great|Upper|Lower|North|South|East|West|Los|Las|El|La|Le|Bad|Sankt)\.? )?{_TOWN}(?:(?:[ -](?:upon|on|of|the|de|la|le|sur|am|an|der|del)[ -]|[ -]){_TOWN}){{0,3}})"
_AFTER = anchored(
    r"\b(?:grew up (?:in|near|outside)|(?:was |were |is |are )?(?:born|raised|brought up|living|based|resident|residing|resides?|lives?|lived|located|situated|stationed|settled|buried|married|schooled|died|staying|stayed|working|works|worked|dwelling) (?:in|at|near|outside)|"
    r"(?:moved|moving|move|relocated|relocating|emigrated|fled|flew|flying|travel(?:l?ed|ling)?|drove|commutes?|returned|deported|transferred|went|driving|heading) (?:back )?to|"
    r"(?:comes?|came|hails?|moved|arrived|travelled|is|are|am|was|were|originally|native|back) from|native of|resident of|(?:city|town|village|municipality|borough|county|province|parish|hamlet|suburb|district|region|state|port|island) of|"
    r"(?:my|his|her|their|our) (?:home ?town|home city|village|town|city)(?: of|,| is| was)|"
    r"(?:nacid[oa]|residente|domiciliad[oa]|vecin[oa]|natural|vive|vivo|viviendo|afincad[oa]) (?:en|de)|(?:née?|habite|habitant|demeurant|domicilié?e?|réside|vit) (?:à|au|en)|"
    r"(?:geboren|wohnhaft|wohnt|wohne|lebt|lebe|aufgewachsen|ansässig) in|aus|(?:født|bor|boede|bosat|opvokset|boende) i) "
    + _NAME,
    "grew_up was_ were_ is_ are_ born raised brought_up living based resident residing reside lives lived live_ located situated stationed settled buried married schooled died staying stayed working works worked dwelling "
    "moved moving move_ relocat emigrated fled flew flying travel drove commute returned deported transferred went driving heading comes come_ came hails hail_ arrived am_ originally native back_from city_of town_of village_of municipality_of borough_of county_of province_of parish_of hamlet_of suburb_of district_of region_of state_of port_of island_of "
    "my_ his_ her_ their_ our_ nacid residente domiciliad vecin natural vive vivo viviendo afincad ne_ nee_ habit demeurant domicili reside vit_ geboren wohn lebt lebe aufgewachsen ansassig aus_ født bor_ boede bosat opvokset boende",
)
_NOT_PLACES = frozenset(
    "january february march april may june july august september october november december monday tuesday "
    "wednesday thursday friday saturday sunday english french german spanish danish christmas easter "
    "the a an i it he she they we you this that january he".split()
)


def find(reading: Reading) -> Iterator[Hit]:
    text, cased = reading.text, reading.cased
    yield from hits(reading.near(STREET, _ENGLISH, cased), "ADDRESS", 0.85, "street and number")
    yield from _abroad(reading)
    yield from hits(reading.near(DIGITS, _BOX), "ADDRESS", 0.85, "post box")
    yield from hits(reading.near(DIGITS, _UNIT_ALONE), "ADDRESS", 0.65, "flat or suite")
    yield from hits(reading.near(DIGITS, _ZIP_LABEL), "ADDRESS", 0.75, "postcode after a label")
    yield from hits(reading.near(FAR, _ZIP), "ADDRESS", 0.8, "state and ZIP code")
    for hit in hits(reading.on_lines(_TOWN_STATE, ",", cased), "LOCATION", 0.65, "town and state"):
        start = hit.start
        while (word := _FIRST.match(cased, start, hit.end)) and "stop" in kinds_of(word[1]):
            start = word.end()
        town, state = cased[start : hit.end].rsplit(", ", 1)
        if state in _DEGREES and lexicon.plain(town) not in lexicon.places():
            continue
        yield Hit(start, hit.end, hit.entity, hit.score, hit.rule)
    yield from hits(reading.near(DIGITS, _POSTCODE), "ADDRESS", 0.75, "UK postcode")
    for hit in hits(reading.on_lines(_LABELLED, ":="), "ADDRESS", 0.8, "address after a label"):
        if any(c.isdigit() or c.isupper() for c in text[hit.start : hit.end]):
            yield _trimmed(text, hit)
    for hit in hits(reading.on_lines(_PLACE_LABEL, ":="), "LOCATION", 0.75, "place after a label"):
        if text[hit.start].isupper() or text[hit.start].isdigit():
            yield _trimmed(text, hit)
    yield from _context(reading)
    yield from _known(reading)


def _abroad(reading: Reading) -> Iterator[Hit]:
    unclear = all(code is None for _, _, code in reading.paragraphs)
    for language, anyway, number, pattern in _OTHERS:
        if language not in (reading.languages if anyway else reading.spoken) and not (anyway and unclear):
            continue
        if not any(stem in reading.flat for stem in _STEMS[language]):
            continue
        found = reading.near(STREET, pattern, reading.cased) if number else pattern.finditer(reading.cased)
        for hit in hits(found, "ADDRESS", 0.75, f"street ({language})"):
            yield _trimmed(reading.text, hit)


def _trimmed(text: str, hit: Hit) -> Hit:
    end = hit.end
    while end > hit.start + 1 and text[end - 1] in " .,;)":
        end -= 1
    return Hit(hit.start, end, hit.entity, hit.score, hit.rule)


def _context(reading: Reading) -> Iterator[Hit]:
    for match in reading.anchored(_AFTER, reading.cased):
        start, end = match.span("x")
        first = lexicon.plain(re.split(r"[ '’-]", match["x"])[0])
        if first in _NOT_PLACES or (
            " " not in match["x"] and lexicon.is_common(first) and first not in lexicon.places()
        ):
            continue
        while match.string[end - 1] in ".'’-":
            end -= 1
        if reading.cased[:end].endswith(("'s", "’s")):
            end -= 2
        yield Hit(start, end, "LOCATION", 0.75, "place after words like 'lives in'")


def _known(reading: Reading) -> Iterator[Hit]:
    """Towns and countries of the list. A word that is also a common word or a person's name
    is left to its context."""
    places, first, last = lexicon.places(), lexicon.first_names(), lexicon.surnames()
    words = reading.words
    skip = -1
    for index, (start, _, word) in enumerate(words):
        if not word[0].isupper() or start < skip or len(word) < 3:
            continue
        for group in _groups(words, index, reading.cased):
            name = lexicon.plain(" ".join(w for _, _, w in group))
            if name not in places:
                continue
            if len(group) == 1 and (lexicon.is_common(name) or name in first or name in last):
                continue
            skip = group[-1][1]
            yield Hit(start, skip, "LOCATION", 0.6, "known place")
            break


def _groups(words: list[tuple[int, int, str]], index: int, text: str) -> Iterator[list[tuple[int, int, str]]]:
    """Up to four words with single blanks between that end in a capitalised one, longest first."""
    end = index + 1
    while end < len(words) and end < index + 4 and text[words[end - 1][1] : words[end][0]] == " ":
        end += 1
    while end > index:
        if words[end - 1][2][0].isupper():
            yield words[index:end]
        end -= 1
