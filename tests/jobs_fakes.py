"""An engine of the shape the pipeline has, for tests of everything around it."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from dpredact.errors import DocumentError, ModelError
from dpredact.jobs.engine import Input, Result

MARKER = "Zebulon-Quartermain"  # a private word that may appear nowhere but in the inputs


@dataclass(frozen=True)
class FakeFactory:
    """Upper-cases documents; a document's first word can ask for trouble.

    log: a folder in which every draw leaves one file, whatever becomes of it afterwards.
    """

    log: str = ""
    broken: bool = False
    seconds: float = 0.0

    def __call__(self) -> FakeEngine:
        if self.broken:
            raise ModelError("the weights are not on this machine", next_step="fetch them")
        return FakeEngine(self)


@dataclass(frozen=True)
class FakeEngine:
    settings: FakeFactory
    spent: bool = True

    def __call__(self, given: Input, tokens) -> Result:
        text, name = given.data.decode("utf-8"), given.name
        word = text.split(" ", 1)[0]
        if self.settings.log:
            (Path(self.settings.log) / f"{name}.{os.getpid()}.{time.monotonic_ns()}").touch()
        if word == "unreadable":
            raise DocumentError("cannot be read as text", next_step="convert it", place=f"{name}, offset 3")
        if word == "bug":
            raise ValueError(f"a message that quotes {text}")
        if word == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        for _ in range(3):
            tokens(1)
            time.sleep(self.settings.seconds / 3)
        return Result(
            status="written",
            data=text.replace(MARKER, "[PERSON]").upper().encode(),
            certificate={"subject": name},
            finished="length" if word == "long" else "stop",
            epsilon={"PERSON": "8.1"},
            epsilon_all="8.1",
            report={"words": [MARKER]},
        )
