"""Where a policy comes from: which file holds, and its bytes as text."""

from __future__ import annotations

import os
from pathlib import Path

from dpredact.errors import PolicyError

FILE_NAME = "dpredact.yaml"
VARIABLE = "DPREDACT_POLICY"


def find(given: str | os.PathLike[str] | None = None, start: Path | None = None) -> Path:
    """The policy file that holds: `given`, DPREDACT_POLICY, or the nearest dpredact.yaml.

    The search goes upwards from `start` (default: the working folder) to the repository
    root, the folder with `.git`. Raises PolicyError with the command that writes a policy.
    """
    named = given or os.environ.get(VARIABLE)
    if named:
        path = Path(named)
        if not path.is_file():
            source = "" if given else f" (named by {VARIABLE})"
            raise PolicyError(
                f"there is no policy file of this name{source}",
                next_step="give an existing file, or write one with `dpredact policy init demo`",
                place=str(path),
            )
        return path
    folder = (start or Path.cwd()).resolve()
    for here in (folder, *folder.parents):
        if (here / FILE_NAME).is_file():
            return here / FILE_NAME
        if (here / ".git").exists():
            break
    raise PolicyError(
        f"no policy: neither --policy nor {VARIABLE} names one, and there is no {FILE_NAME} "
        "in this folder or above it",
        next_step=f"write one with `dpredact policy init demo -o {FILE_NAME}`",
    )


def read_text(path: Path, limit: int) -> str:
    """The file as text. Raises PolicyError; never guesses an encoding."""
    place = str(path)
    try:
        with path.open("rb") as stream:
            data = stream.read(limit + 1)
    except IsADirectoryError:
        raise PolicyError("this is a folder, not a file", place=place) from None
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "it cannot be opened"
        raise PolicyError(
            f"cannot read the file: {reason}", next_step="check the name and rights", place=place
        ) from None
    if len(data) > limit:
        raise PolicyError(f"the file is larger than {limit // 1024} KiB", place=place)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = len(before.rsplit(b"\n", 1)[-1].decode("utf-8")) + 1
    raise PolicyError(
        "not UTF-8 text", next_step="save the file as UTF-8", place=f"{place}:{line}:{column}"
    )
