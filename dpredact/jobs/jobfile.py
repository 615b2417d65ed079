"""job.json: the status of every file of a job, kept in the output folder.

It may be passed on with the released files: places below the output folder, statuses and
reasons stand in it, no words, no absolute paths. Records of earlier runs stay until the
same output is worked on again.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import dpredact
from dpredact.errors import UsageError
from dpredact.jobs import outputs
from dpredact.jobs.outputs import Target
from dpredact.jobs.walking import Remark, Source

NAME = "job.json"
_EVERY = 10.0  # seconds between two writes while the job runs


@dataclass(frozen=True)
class Record:
    """What became of one file, as `rewrite --json` and job.json tell it."""

    path: str
    output: str = ""
    certificate: str = ""
    status: str = "skipped"
    reason: str = ""
    next_step: str = ""
    finished: str = ""
    epsilon: dict[str, str] = field(default_factory=dict)
    epsilon_all: str = ""
    code: int = 0

    def line(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "path": self.path,
            "output": self.output or None,
            "certificate": self.certificate or None,
            "status": self.status,
            "reason": self.reason or None,
            "next_step": self.next_step or None,
            "finished": self.finished or None,
            "epsilon": self.epsilon,
            "epsilon_all": self.epsilon_all or None,
        }


class JobFile:
    """Written at the start ("running"), now and then, and at the end."""

    def __init__(
        self, folder: Path, job: str, *, part: str = "", neutral: bool = False,
        passed: Sequence[Remark] = (), problems: Sequence[Remark] = (),
    ) -> None:  # fmt: skip
        """part: name of the shard. neutral: never show what a source is called."""
        self.path = folder / (f"job.{part}.json" if part else NAME)
        self._folder, self._job, self._neutral = folder, job, neutral
        self._passed, self._problems = passed, problems
        self._documents = {d["output"]: d for d in _documents(self.path, missing_ok=True)}
        self._written = 0.0

    def add(self, source: Source, target: Target, record: Record) -> None:
        output = os.path.relpath(target.document, self._folder)
        line = record.line()
        del line["schema"]
        line["path"] = output if self._neutral else str(source.place)
        line["output"] = output
        line["certificate"] = line["certificate"] and os.path.relpath(
            target.certificate, self._folder
        )
        self._documents[output] = line
        if time.monotonic() - self._written > _EVERY:
            self._write("running")

    def __enter__(self) -> JobFile:
        self._write("running")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._write("interrupted" if kind else "finished")

    def _write(self, state: str) -> None:
        documents = [self._documents[k] for k in sorted(self._documents)]
        body: dict[str, Any] = {
            "schema": 1,
            "job": self._job,
            "version": dpredact.__version__,
            "state": state,
            "counts": dict(sorted(Counter(d["status"] for d in documents).items())),
            "documents": documents,
        }
        if not self._neutral:
            body["passed"] = [vars(r) for r in self._passed]
            body["problems"] = [vars(r) for r in self._problems]
        self._written = time.monotonic()
        text = json.dumps(body, indent=1, ensure_ascii=False) + "\n"
        with suppress(OSError):  # a full disk is told by the document that met it
            outputs.write_whole(self.path, text.encode("utf-8", "backslashreplace"))


def is_job_file(path: Path) -> bool:
    """Is this the record that a job left in its output folder? It holds no words."""
    if not (path.name.startswith("job.") and path.suffix == ".json"):
        return False
    try:
        body = json.loads(path.read_bytes())
        return body["schema"] == 1 and {"job", "state", "documents"} <= body.keys()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


def failed_outputs(file: Path) -> set[str]:
    """Outputs (below the folder) that a job.json lists as failed or refused, or never done."""
    return {
        d["output"] for d in _documents(file)
        if d["status"] in ("failed", "refused") or (d["status"] == "skipped" and not d["certificate"])
    }  # fmt: skip


def _documents(file: Path, *, missing_ok: bool = False) -> Iterable[dict[str, Any]]:
    try:
        body = json.loads(file.read_text(encoding="utf-8"))
        if body["schema"] != 1:
            raise ValueError
        return [{**d, "output": str(d["output"]), "status": str(d["status"])} for d in body["documents"]]
    except FileNotFoundError:
        if missing_ok:
            return []
        raise UsageError("there is no such job.json", place=str(file)) from None
    except (OSError, ValueError, KeyError, TypeError):
        raise UsageError(
            "this is not the job.json of a job",
            next_step="give the file that a rewrite left in its output folder",
            place=str(file),
        ) from None
