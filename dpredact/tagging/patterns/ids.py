"""Numbers that states, courts and companies give to people and their things."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module

from dpredact.tagging.patterns.anchors import DIGITS, FAR, LONG, Anchored, anchored
from dpredact.tagging.patterns.interface import Hit, Reading, hits

# -- US social security numbers --------------------------------------------------------

_SSN = re.compile(r"(?<![\w.,/-])(\d{3})([- ])(\d{2})\2(\d{4})(?![\w/-]|[.,]\d)")
_SSN_LABEL = re.compile(r"(?i)\b(?:ssn|social security)(?: ?(?:no|number|#))?\.?(?: is| was)? ?[:#]? ?$")
_NINE = re.compile(r"(?<![\w.])\d{9}(?![\w]|[.,]\d)")
# 987-65-4320 to -4329 were set aside for advertisements and belong to nobody: left alone.
# Numbers that were printed on samples but look issued (078-05-1120, 219-09-9999) are
# tagged: people have filed them as their own.
_ADVERTISED = re.compile(r"987-?65-?432\d")


def _ssn(reading: Reading) -> Iterator[Hit]:
    """Area 001 to 899 without 666, group and serial not zero (SSA, 2011)."""
    for match in reading.near(LONG, _SSN):
        area, mark, group, serial = match.groups()
        labelled = _SSN_LABEL.search(reading.before(match.start())) is not None
        wrong = area in ("000", "666") or area[0] == "9" or group == "00" or serial == "0000"
        if _ADVERTISED.fullmatch(f"{area}-{group}-{serial}") or (wrong and not labelled):
            continue
        score = 0.95 if labelled else 0.85 if mark == "-" else 0.5
        yield Hit(match.start(), match.end(), "US_SSN", score, "SSN: area, group and serial")
    for match in reading.near(LONG, _NINE):
        if _SSN_LABEL.search(reading.before(match.start())):
            yield Hit(match.start(), match.end(), "US_SSN", 0.9, "SSN after a label")


# -- national numbers with a check -------------------------------------------------------

# shape, module of python-stdnum, entity, label that must stand in front ("" if the shape
# and the check are enough), country
_STATES: tuple[tuple[str, str, str, str, str], ...] = (
    (r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D]", "", "NATIONAL_ID", "", "GB"),
    (r"\d{3}[ -]?\d{3}[ -]?\d{4}", "gb.nhs", "NATIONAL_ID", r"nhs|health|patient", "GB"),
    (r"9\d\d-(?:5\d|6[0-5]|7\d|8[0-8]|9[0-24-9])-\d{4}", "us.itin", "TAX_ID", "", "US"),
    (r"\d{2}-\d{7}", "us.ein", "TAX_ID", r"ein|tax|employer", "US"),
    (r"\d{3}[ -]\d{3}[ -]\d{3}", "ca.sin", "NATIONAL_ID", r"sin|social insurance", "CA"),
    (r"\d{8}[ -]?[A-HJ-NP-TV-Z]", "es.dni", "NATIONAL_ID", "", "ES"),
    (r"[XYZ][ -]?\d{7}[ -]?[A-HJ-NP-TV-Z]", "es.nie", "NATIONAL_ID", "", "ES"),
    (r"[A-HJ-NP-SUVW]-?\d{7}[0-9A-J]", "es.cif", "TAX_ID", r"cif|nif", "ES"),
    (r"[12] ?\d\d ?(?:0[1-9]|1[0-2]|[2-9]\d) ?\d[\dAB] ?\d{3} ?\d{3} ?\d\d", "fr.nir", "NATIONAL_ID", "", "FR"),
    (r"\d{2} ?\d{3} ?\d{3} ?\d{3}", "de.idnr", "TAX_ID", r"steuer\S*|idnr|tax", "DE"),
    (r"\d{2} ?\d{6} ?[A-Z] ?\d{3}", "de.rvnr", "NATIONAL_ID", "", "DE"),
    (r"(?:0[1-9]|[12]\d|3[01])(?:0[1-9]|1[0-2])\d\d-?\d{4}", "dk.cpr", "NATIONAL_ID", r"cpr\S*|personnummer", "DK"),
    (r"(?:0[1-9]|[12]\d|3[01])(?:0[1-9]|1[0-2])\d\d-\d{4}", "", "NATIONAL_ID", "", "DK"),
    (r"\d{11}", "pl.pesel", "NATIONAL_ID", "", "PL"),
    (r"\d{3}-\d{2,3}-\d{2}-\d{2,3}|\d{10}", "pl.nip", "TAX_ID", r"nip|tax|vat", "PL"),
    (r"\d{9}", "nl.bsn", "NATIONAL_ID", r"bsn|burgerservicenummer|sofi\S*", "NL"),
    (r"\d{2}\.?\d{2}\.?\d{2}-?\d{3}\.?\d{2}", "be.nn", "NATIONAL_ID", "", "BE"),
    (r"756\.?\d{4}\.?\d{4}\.?\d{2}", "ch.ssn", "NATIONAL_ID", "", "CH"),
    (r"(?:\d{2})?\d{6}[-+]\d{4}", "se.personnummer", "NATIONAL_ID", "", "SE"),
    (r"\d{6} ?\d{5}", "no.fodselsnummer", "NATIONAL_ID", "", "NO"),
    (r"\d{6}[-+A]\d{3}[0-9A-Y]", "fi.hetu", "NATIONAL_ID", "", "FI"),
    (r"[A-Z]{6}\d\d[A-EHLMPRST]\d\d[A-Z]\d{3}[A-Z]", "it.codicefiscale", "NATIONAL_ID", "", "IT"),
    (r"\d{3}\.\d{3}\.\d{3}-\d\d", "br.cpf", "NATIONAL_ID", "", "BR"),
    (r"\d{4} ?\d{4} ?\d{4}", "in_.aadhaar", "NATIONAL_ID", r"aadhaar|uidai", "IN"),
    (r"[A-Z]{3}[ABCFGHLJPTK][A-Z]\d{4}[A-Z]", "in_.pan", "TAX_ID", "", "IN"),
    (r"\d{3} ?\d{3} ?\d{3}", "au.tfn", "TAX_ID", r"tfn|tax", "AU"),
)  # fmt: skip


@lru_cache(maxsize=1)
def _national() -> tuple[tuple[re.Pattern[str], str, str, re.Pattern[str] | None, str], ...]:
    table = []
    for shape, module, entity, label, country in _STATES:
        pattern = re.compile(rf"(?<![\w.,/+-])(?:{shape})(?![\w/-]|[.,]\d)")
        near = re.compile(rf"(?i)\b(?:{label})\b[^\n]{{0,16}}$") if label else None
        table.append((pattern, module, entity, near, country))
    return tuple(table)


def _states(reading: Reading) -> Iterator[Hit]:
    for pattern, module, entity, near, country in _national():
        for match in reading.near(FAR if country == "IN" else LONG, pattern):
            if reading.shielded(*match.span()):
                continue
            if near and not near.search(reading.before(match.start())):
                continue
            if module and not import_module(f"stdnum.{module}").is_valid(match[0]):
                continue
            yield Hit(match.start(), match.end(), entity, 0.85, f"national number, {country}")


# -- whatever a label says ------------------------------------------------------------

# Strong labels name one person's number and may stand right before it; weak ones (a file,
# an order) need a mark that says "this is the number". A value holds at least three digits.
_VALUE = r"[\"']?(?P<x>(?!(?:no|nr|num|number|nummer|code|id)\b)(?=(?:[^\d\n]{0,10}\d){3})[A-Za-z0-9](?:[A-Za-z0-9]|[-/._](?=[A-Za-z0-9])){3,40})(?![\w])"
_MARK = r"(?:(?:\b|(?<=[ (]))(?:no|nos|nr|num|number|nummer|n[úu]mero|num[ée]ro|code|id)\b\.?|#|№|N°|nº)"
_SAYS = r"(?: (?:is|was|of|ist|lautet|est|es|er))?"
_STRONG: tuple[tuple[str, str, str], ...] = (
    ("PASSPORT", r"passports?|reisepass|passeport|pasaporte|pas(?:nummer)?", "passport reisepass passeport pasaporte pas"),
    ("LICENSE", r"driv(?:er|ing)(?:'s|s|’s)? ?licen[cs]es?|dl|licen[cs]e|führerschein\w*|permis de conduire|carn[ée] de conducir|kørekort\w*",
     "driver driving dl licen fuhrerschein permis_de carne_de kørekort"),
    ("NATIONAL_ID", r"national id(?:entity|entification)?(?: card)?|identity card|id card|personalausweis\w*|dni|nie|nif|cpr|pesel|nhs|medicare|nino|national insurance|personnummer|curp|ssn|cedula",
     "national_i identity_card id_card personalausweis dni nie nif cpr pesel nhs medicare nino personnummer curp ssn cedula"),
    ("TAX_ID", r"vat|tax(?:payer)?(?: id(?:entification)?)?|tin|ein|itin|utr|steuer\w*|ust-?id\w*|siret|siren|cvr|nip|regon",
     "vat tax tin ein itin utr steuer ust siret siren cvr nip regon"),
    ("ID", r"mrn|medical record|member(?:ship)?|patient|insurance|subscriber|beneficiary|employee|staff|student|customer|client|badge|imei|iccid|vin|device|nhc|historia|cip|nass|versicherten\w*|kunden\w*|patienten\w*|policy|claim|certificate",
     "mrn medical_record member patient insurance subscriber beneficiary employee staff student customer client badge imei iccid vin device nhc historia cip nass versicherten kunden policy claim certificate"),
)  # fmt: skip
_WEAK: tuple[tuple[str, str, str], ...] = (
    ("CASE_NUMBER", r"case|docket|file|application|petition|complaint|matter|proceedings|expediente|aktenzeichen|az|dossier|affaire|sag\w*|j\.?nr",
     "case docket file application petition complaint matter proceedings expediente aktenzeichen az dossier affaire sag jnr j.nr"),
    ("ID", r"ref(?:erence)?|order|ticket|invoice|incident|request|transaction|confirmation|booking|reservation|tracking|serial|registration|record|parcel|shipment|receipt|report|permit|visa|id|user|contract|loan|rechnung\w*|bestell\w*|facture|commande|pedido|factura|faktura\w*|ordre\w*",
     "ref order ticket invoice incident request transaction confirmation booking reservation tracking serial registration record parcel shipment receipt report permit visa id user contract loan rechnung bestell facture commande pedido factura faktura ordre"),
)  # fmt: skip
_LABELS: tuple[tuple[Anchored, str, str], ...] = (
    *(
        (anchored(rf"(?i)(?<![\w-])(?:{label}) ?(?:{_MARK})?{_SAYS} ?[:=#]? ?\(?{_VALUE}", heads), entity, "number after a label")
        for entity, label, heads in _STRONG
    ),
    *(
        (anchored(rf"(?i)(?<![\w-])(?:{label})(?: ?{_MARK}{_SAYS} ?[:=#]? ?|{_SAYS} ?[:=#] ?|s? ?\((?:no|nos|nr)\. ?){_VALUE}", heads),
         entity, "number after a label and a mark")
        for entity, label, heads in _WEAK
    ),
)  # fmt: skip


# Land: plot nos. 260, 268, 119/5 and 425; sheet/plan 33/29. Short numbers, so "no." must stand there.
_LAND = anchored(
    r"(?i)\b(?:(?:plots?|parcels?|lots?|folios?|entry|entries)(?: of land)? ?\(?(?:nos?\.?|numbers?|nr\.?)|sheet/plan(?: nos?\.?)?) ?"
    r"(?P<x>\d[\d/.]*(?<=\d)(?:(?:, |,? and )\d[\d/.]*(?<=\d))*)(?![\w%])",
    "plot parcel lot folio entry entries sheet/plan",
)


# Numbers that are written with blanks, after labels that name them.
_SPACED = anchored(
    r"(?i)\b(?:nass|n[ºo°]\.? ?col(?:egiado)?|n[úu]m(?:ero)?\.? de colegiado|nhs(?: number| no\.?)?|numéro de sécurité sociale|versicherungsnummer)\.? ?:? ?"
    r"(?P<x>\d[\d /-]{5,18}\d)(?![\w])",
    "nass nº no° no. no_ no.col nocol n° num nhs numero versicherungsnummer",
)


def _labelled(reading: Reading) -> Iterator[Hit]:
    yield from hits(reading.anchored(_LAND), "ID", 0.75, "number of a piece of land")
    yield from hits(reading.anchored(_SPACED), "ID", 0.75, "number with blanks after a label")
    for pattern, entity, rule in _LABELS:
        for hit in hits(reading.anchored(pattern), entity, 0.75, rule):
            if not _YEAR.fullmatch(reading.text[hit.start : hit.end]):
                yield hit


_YEAR = re.compile(r"(?:19|20)\d\d(?:-\d\d-\d\d)?|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}")

# Documents and memberships are often a letter or two and many digits, without any label.
_CODE = re.compile(r"(?<![\w./-])(?:[A-Z]{2}-(?P<kind>DL|ID|PP|PN)-\d{5,14}|[A-Z]{1,3}-?\d{6,12}|[A-Z]{2,4}-\d{3,6}-\d{3,8})(?![\w-]|[./]\d)")
_CODE_KINDS = {"DL": "LICENSE", "ID": "NATIONAL_ID", "PP": "PASSPORT", "PN": "PASSPORT"}


def _codes(reading: Reading) -> Iterator[Hit]:
    for match in reading.near(LONG, _CODE):
        if not reading.shielded(*match.span()):
            entity = _CODE_KINDS.get(match["kind"] or "", "ID")
            yield Hit(match.start(), match.end(), entity, 0.6, "letters and many digits")


# -- courts, vehicles -------------------------------------------------------------------

_APPLICATION = re.compile(
    r"(?<![\w/.-])(?P<x>\d{1,6}/\d{2}(?:\d{2})?)(?![\w/-]|\.\d)"
)
_NUMBERED = re.compile(r"(?i)\b(?:nos?|nr|application|case|n°|núm|n[úu]m|sag)\b\.?[^\n.;]{0,60}$")
_COURT = re.compile(
    r"(?<![\w/-])(?:\d{1,2}:\d{2}-(?:cv|cr|mj|mc|bk|ap)-\d{3,6}(?:-[A-Z]{2,4})*"  # US federal
    r"|[CTF][-‑]\d{1,4}/\d{2}(?: P)?|\[\d{4}\] (?:EWCA|EWHC|UKSC|UKHL|UKPC|UKUT|UKFTT|CSOH|NICA|IEHC) (?:[A-Z][a-z]+ )?\d{1,5}"
    r"|[A-ZÀ-ÖØ-Þ]{2,6} (?:19|20)\d\d:? (?:p|s|nr|no|ref)\.? ?\d{1,5}"  # law reports: NJA 2005 p. 884
    r"|[\[(](?:1[89]|20)\d\d[\])] (?:\d{1,2} )?[A-Z][A-Za-z.]{0,9}(?: [A-Z][A-Za-z.]{0,5}){0,2} \d{1,5}"  # [2001] 3 WLR 206
    r"|\d{1,4} (?:U\. ?S\.|S\. ?Ct\.|L\. ?Ed\.(?: ?2d)?|F\.(?: ?Supp\.)?(?: ?[234]d)?|(?:[AP]|[NS]\.[EW]|So)\.(?: ?[23]d)?|WLR|EHRR|QB|KB|AC|All ER|Cr App R) \d{1,5}"
    r"|(?:VfSlg|VwSlg)\.? ?(?:(?:no|nos|Nr)\. ?)?\d[\d.,]*(?:/\d{4})?|(?:BVerfGE|BVerwGE|BGHZ|BGHSt) \d{1,3}, \d{1,3}"
    r"|(?:UfR|U|Rt)\.? ?(?:19|20)\d\d[., -]{1,2}(?:p\. ?|s\. ?)?\d{1,5}(?: ?[HVØ])?"
    r"|(?:1[6-9]|20)\d\d:\d{1,4}(?!:)"  # Nordic statutes and bills: 1991:1469
    r"|ECLI:[A-Z]{2}:[A-Z]{1,7}:\d{4}:[\w.]{3,25}"
    r"|\d{1,3} [A-Z][a-z]?[A-Za-z]{0,3} \d{1,6}/\d{2})(?![\w/-])"
)
_PLATE_LABEL = anchored(
    r"(?i)\b(?:(?:licen[cs]e|number|registration|vehicle) ?plates?|plates?|reg(?:istration)?(?: (?:no|number|mark))?|"
    r"vehicle|car|van|kennzeichen|matr[íi]cula|immatriculation|plaque|nummerplade|registreringsnummer)\.?"
    r"(?: (?:no|number|nr))?\.?(?: (?:is|was|with))? ?[:#]? ?[\"']?"
    r"(?P<x>(?-i:(?=[A-Z0-9 -]{0,8}\d)(?=[A-Z0-9 -]{0,8}[A-Z])[A-Z0-9]{1,4}(?:[ -]?[A-Z0-9]{1,5}){1,3}))(?![\w-])",
    "license_plate licence_plate licenseplate number_plate registration vehicle plate reg car van kennzeichen matricula immatriculation plaque nummerplade registreringsnummer",
)
_PLATES: dict[str, re.Pattern[str]] = {
    region: re.compile(rf"(?<![\w-])(?:{shape})(?![\w-])")
    for region, shape in {
        "GB": r"[A-HJ-PR-Y][A-HJ-PR-Y]\d\d ?[A-HJ-PR-Z]{3}",
        "DE": r"[A-ZÄÖÜ]{1,3}-[A-Z]{1,2} ?\d{1,4}[EH]?",
        "FR": r"[A-HJ-NP-TV-Z]{2}-\d{3}-[A-HJ-NP-TV-Z]{2}",
        "ES": r"\d{4} ?[BCDFGHJ-NPR-TV-Z]{3}",
        "DK": r"[A-Z]{2} \d\d \d{3}",
    }.items()
}


def _courts(reading: Reading) -> Iterator[Hit]:
    yield from hits(reading.near(DIGITS, _COURT), "CASE_NUMBER", 0.8, "court number")
    for hit in hits(reading.near(DIGITS, _APPLICATION), "CASE_NUMBER", 0.75, "number/year"):
        number, year = reading.text[hit.start : hit.end].split("/")
        if len(number) >= 4 or _NUMBERED.search(reading.before(hit.start, 80)):
            yield hit


def _vehicles(reading: Reading) -> Iterator[Hit]:
    for match in reading.anchored(_PLATE_LABEL):
        words = match["x"]
        if words == words.upper():
            yield Hit(*match.span("x"), "PLATE", 0.8, "plate after a label")
    for region in reading.regions:
        if shape := _PLATES.get(region):
            yield from hits(reading.near(DIGITS, shape), "PLATE", 0.6, f"plate of the form of {region}")


def find(reading: Reading) -> Iterator[Hit]:
    yield from _ssn(reading)
    yield from _states(reading)
    yield from _labelled(reading)
    yield from _courts(reading)
    yield from _vehicles(reading)
    yield from _codes(reading)
