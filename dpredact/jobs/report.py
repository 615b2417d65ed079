"""The owner's private report: what was found, what it really cost, what reappeared.

It holds the private words and numbers that depend on them (THEORY §5), so it is a file of
its own with mode 0600 and never lies in the output folder. One JSON object a line, each
marked private; the first says so in words.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dpredact.errors import UsageError

WARNING = (
    "PRIVATE. This file holds the words that were protected and numbers computed from them. "
    "Keep it with the originals; publishing it undoes the protection."
)


class Report:
    """Appends to one file. Raises UsageError if the file may not lie there."""

    def __init__(self, path: Path, released: Iterable[Path]) -> None:
        """released: folders whose content is meant to be passed on."""
        real = Path(os.path.realpath(path))
        for folder in released:
            if real.is_relative_to(os.path.realpath(folder)):
                raise UsageError(
                    "the private report would lie among the released files",
                    next_step="choose a place outside the output folder",
                    place=str(path),
                )
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
            self._descriptor = os.open(path, flags, 0o600)
            os.fchmod(self._descriptor, 0o600)
        except OSError as error:
            raise UsageError(
                f"the private report cannot be written: {error.strerror}",
                next_step="choose a place you can write to",
                place=str(path),
            ) from None
        if os.fstat(self._descriptor).st_size == 0:
            self._write({"note": WARNING})

    def add(self, path: str, body: dict[str, Any]) -> None:
        """What the pipeline reported about one document. Raises OSError."""
        self._write({"path": path, **body})

    def close(self) -> None:
        os.close(self._descriptor)

    def _write(self, body: dict[str, Any]) -> None:
        line = json.dumps({"schema": 1, "private": True, **body}, ensure_ascii=False)
        os.write(self._descriptor, line.encode("utf-8", "backslashreplace") + b"\n")
