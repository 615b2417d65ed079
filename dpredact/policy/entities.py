"""The entity types, and which family each belongs to.

A policy group may name a type (US_SSN) or a whole family (ID); the narrower name wins.
CORE families are always looked for, so a policy has to say what happens to each of them.
OPTIONAL families (origins and beliefs, amounts, works and events) are looked for only if
a group names them or the policy has a group `other`: in most documents they are the text
that readers want.
"""

from __future__ import annotations

CORE: dict[str, tuple[str, ...]] = {
    "PERSON": ("PERSON",),
    "LOCATION": ("LOCATION",),
    "ADDRESS": ("ADDRESS",),
    "ORG": ("ORG",),
    "DATE": ("DATE",),
    "TIME": ("TIME",),
    "AGE": ("AGE",),
    "EMAIL": ("EMAIL",),
    "PHONE": ("PHONE",),
    "CARD": ("CREDIT_CARD",),
    "IBAN": ("IBAN",),
    "ID": (
        "ID", "US_SSN", "NATIONAL_ID", "TAX_ID", "PASSPORT", "LICENSE", "PLATE", "ACCOUNT",
        "CASE_NUMBER", "USERNAME", "IP", "MAC", "URL", "SECRET", "DENY",
    ),
}  # fmt: skip

OPTIONAL: dict[str, tuple[str, ...]] = {
    "DEMOGRAPHIC": ("DEMOGRAPHIC", "PROFESSION", "HEALTH"),
    "QUANTITY": ("QUANTITY", "MONEY"),
    "MISC": ("MISC",),
}

# Names that other tools use for the same thing.
ALIASES: dict[str, str] = {
    "CREDIT_CARD_NUMBER": "CREDIT_CARD",
    "LOC": "LOCATION",
    "GPE": "LOCATION",
    "ORGANIZATION": "ORG",
    "ORGANISATION": "ORG",
    "EMAIL_ADDRESS": "EMAIL",
    "PHONE_NUMBER": "PHONE",
    "IBAN_CODE": "IBAN",
    "IP_ADDRESS": "IP",
    "SSN": "US_SSN",
    "NRP": "DEMOGRAPHIC",
    "DEM": "DEMOGRAPHIC",
}

FAMILIES: dict[str, tuple[str, ...]] = {**CORE, **OPTIONAL}
FAMILY_OF: dict[str, str] = {t: family for family, types in FAMILIES.items() for t in types}
NAMES: frozenset[str] = frozenset(FAMILIES) | frozenset(FAMILY_OF) | frozenset(ALIASES)


def canonical(name: str) -> str:
    """The entity or family name that `name` stands for. KeyError if nobody knows it."""
    name = ALIASES.get(name, name)
    if name not in FAMILIES and name not in FAMILY_OF:
        raise KeyError(name)
    return name
