"""Neutral names for documents whose file names say too much.

The map from names to neutral names is private: it stays with the owner, mode 0600, outside
the output folder. A name once given is kept, so a job can be resumed and extended. Numbers
are drawn, not counted: their order would show the order of the names.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import filelock

from dpredact.errors import UsageError
from dpredact.jobs import outputs



def neutral_names(file: Path, places: Iterable[PurePosixPath]) -> dict[str, str]:
    """place -> neutral name, for all `places`; new ones are added to `file`.

    Folders are dropped as well, since their names may tell as much. The ending stays: it
    says the format. Raises UsageError if `file` is not such a map or cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(str(file) + ".lock"):
            names = _read(file)
            taken = set(names.values())
            wanted = [str(p) for p in places]
            for place in wanted:
                if place not in names:
                    names[place] = _draw(PurePosixPath(place).suffix, taken)
            body = {"schema": 1, "private": True, "names": names}
            text = json.dumps(body, indent=1, ensure_ascii=True) + "\n"
            outputs.write_whole(file, text.encode("ascii"), 0o600)
    except OSError as error:
        raise UsageError(
            f"the name map cannot be written: {error.strerror or type(error).__name__}",
            next_step="choose a place you can write to",
            place=str(file),
        ) from None
    return {place: names[place] for place in wanted}


def _draw(ending: str, taken: set[str]) -> str:
    while True:
        name = f"document-{secrets.token_hex(5)}{ending.lower()}"
        if name not in taken:
            taken.add(name)
            return name


def _read(file: Path) -> dict[str, str]:
    if not file.exists():
        return {}
    try:
        body = json.loads(file.read_text(encoding="utf-8"))
        if body["schema"] != 1 or not body["private"]:
            raise ValueError
        return {str(k): str(v) for k, v in body["names"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(
            "this file is not a name map",
            next_step="give the map of an earlier run, or a file that does not exist yet",
            place=str(file),
        ) from None
