"""How a job shows itself on stderr: a bar, plain lines, JSON lines, or not at all.

auto is the bar on a terminal and nothing elsewhere. What is shown is public: file names,
counts, statuses and speed.
"""

from __future__ import annotations

import json
import sys
import time
from enum import StrEnum
from typing import Any

import typer

from dpredact.jobs.jobfile import Record

_BEAT = 1.0  # seconds between two lines about tokens


class Mode(StrEnum):
    AUTO = "auto"
    PLAIN = "plain"
    JSON = "json"
    NONE = "none"


class Progress:
    """A listener of `jobs.run`. `quiet` of everything but what went wrong: mode none."""

    def __init__(self, mode: Mode) -> None:
        if mode is Mode.AUTO:
            mode = Mode.AUTO if sys.stderr.isatty() else Mode.NONE
        self.mode = mode
        self.total = self.done = self.drawn = 0
        self._start = self._beat = time.monotonic()
        self._bar: Any = None
        self._first: float | None = None  # when the first tokens were told

    # -- what a job tells ---------------------------------------------------------------

    def began(self, total: int) -> None:
        self.total = total
        self._start = time.monotonic()
        if self.mode is Mode.AUTO:
            self._open_bar()
        self._json("began")

    def started(self, path: str) -> None:
        self._json("started", path=path)
        if self.mode is Mode.PLAIN:
            self._say(f"[{self.done + 1}/{self.total}] {path}")

    def tokens(self, path: str, count: int) -> None:
        self.drawn += count
        now = time.monotonic()
        if self._first is None:
            self._first, self.drawn = now, 0  # loading and tagging are not drawing
        if now - self._beat < _BEAT:
            return
        self._beat = now
        self._json("tokens", path=path, tokens=self.drawn)
        self._move_bar()

    def ended(self, record: Record) -> None:
        self.done += 1
        self._json("ended", path=record.path, status=record.status, reason=record.reason or None)
        if record.code or record.reason:
            self._tell(record)
        elif self.mode is Mode.PLAIN:
            self._say(f"[{self.done}/{self.total}] {record.path}: {record.status}")
        self._move_bar()

    def remark(self, text: str) -> None:
        self._json("remark", text=text)
        if self.mode is not Mode.JSON:
            self._say(text)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    # -- how it looks -------------------------------------------------------------------

    def _tell(self, record: Record) -> None:
        if self.mode is Mode.JSON or (record.status == "skipped" and not record.code):
            return
        self._say(f"{record.path}: {record.status}" + (f": {record.reason}" if record.reason else ""))
        if record.next_step:
            self._say(f"  next: {record.next_step}")

    def _say(self, text: str) -> None:
        if self._bar is not None:
            self._bar.console.print(text, highlight=False, markup=False, soft_wrap=True)
        else:
            typer.echo(text, err=True)

    def _json(self, event: str, **facts: Any) -> None:
        if self.mode is not Mode.JSON:
            return
        elapsed = time.monotonic() - self._start
        line = {
            "schema": 1,
            "event": event,
            **facts,
            "done": self.done,
            "total": self.total,
            "seconds": round(elapsed, 1),
            "tokens_per_second": self._speed(),
            "seconds_left": self._left(elapsed),
        }
        typer.echo(json.dumps(line), err=True)

    def _speed(self) -> float | None:
        seconds = time.monotonic() - self._first if self._first is not None else 0.0
        return round(self.drawn / seconds, 1) if seconds and self.drawn else None

    def _left(self, elapsed: float) -> float | None:
        return round(elapsed / self.done * (self.total - self.done), 1) if self.done else None

    def _open_bar(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            TextColumn("documents"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("", total=self.total, speed="")
        self._bar.start()

    def _move_bar(self) -> None:
        if self._bar is None:
            return
        speed = self._speed()
        shown = f"{speed} tokens/s" if speed is not None else ""
        self._bar.update(self._task, completed=self.done, speed=shown)
