"""The command as a whole: help, exit codes, errors without private text, speed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from dpredact.cli import main as cli
from dpredact.errors import BudgetExceeded, DpredactError, NotCovered, PolicyError

MARKER = "Zanzibella Quorn"


def run(
    *arguments: str | Path, cwd: Path | None = None, stdin: str = "", **env: str
) -> subprocess.CompletedProcess[str]:
    """The real command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "dpredact", *map(str, arguments)],
        cwd=cwd, input=stdin, capture_output=True, text=True, env={**os.environ, **env},
    )  # fmt: skip


def ended(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
    """The exit code of a command that raises `error`."""

    def command() -> None:
        private = MARKER  # a local that a traceback with locals would show
        raise error from ValueError(private)

    monkeypatch.setattr("dpredact.cli.doctor.command", command)
    for hook in ("sys.excepthook", "sys.unraisablehook", "threading.excepthook"):
        monkeypatch.setattr(hook, None)  # main sets its own; this puts pytest's back
    with pytest.raises(SystemExit) as left:
        cli.main(["doctor"])
    return int(left.value.code or 0)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DpredactError("x"), 5),
        (PolicyError("x"), 2),
        (NotCovered("x"), 3),
        (BudgetExceeded("x"), 4),
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 5),
        (RuntimeError(MARKER), 5),
        (MemoryError(), 5),
    ],
)
def test_errors_become_the_exit_codes_of_the_contract(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    """Each kind of error has one code."""
    if isinstance(error, BrokenPipeError):
        monkeypatch.setattr(cli.os, "dup2", lambda *a: None)
        monkeypatch.setattr(cli.sys.stdout, "fileno", lambda: 1, raising=False)
    assert ended(monkeypatch, error) == code


def test_an_error_names_place_message_and_next_step(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of it on stderr; stdout stays clean for documents and JSON."""
    ended(monkeypatch, NotCovered("the file is torn", place="a.txt:3", next_step="mend it"))
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "error: a.txt:3: the file is torn\n  next: mend it\n"


def test_an_internal_error_quotes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Message, locals and cause of an unforeseen error may hold the document."""
    assert ended(monkeypatch, RuntimeError(f"cannot decode {MARKER!r}")) == 5
    out, err = capsys.readouterr()
    assert MARKER not in out + err
    assert "RuntimeError at dpredact/cli/main.py:" in err
    assert "Traceback" not in err


def test_a_thread_that_fails_quotes_nothing() -> None:
    """Python's own report of a failed thread would print the message."""
    code = (
        "import threading, sys; from dpredact.cli import main as cli\n"
        "import dpredact.cli.doctor as d\n"
        "def fail(): raise RuntimeError('Zanzibella')\n"
        "def command(): t = threading.Thread(target=fail); t.start(); t.join()\n"
        "d.command = command\n"
        "cli.main(['doctor'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "RuntimeError" in done.stderr
    assert "Zanzibella" not in done.stderr


def test_help_lists_every_command_in_full() -> None:
    """Each in one line that is not cut, even on a narrow terminal."""
    shown = run("--help", COLUMNS="80").stdout
    for name, line in cli.COMMANDS.items():
        assert f"  {name:8} {line}\n" in shown


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_help(name: str) -> None:
    """-h and --help work everywhere and say how the command is used."""
    for flag in ("-h", "--help"):
        done = run(name, flag)
        assert done.returncode == 0
        assert done.stdout.startswith(f"Usage: dpredact {name}")


def test_help_is_quick() -> None:
    """Under half a second; the best of three, since the machine may be busy."""
    times = []
    for _ in range(3):
        begun = time.perf_counter()
        run("--help")
        times.append(time.perf_counter() - begun)
    assert min(times) < 0.5


def test_version_and_wrong_usage() -> None:
    """0 for a version, 2 for what the command line does not know."""
    assert run("--version").stdout.startswith("dpredact 0.")
    for wrong in (["unknown"], ["--unknown"], ["policy", "unknown"], ["doctor", "--unknown"]):
        done = run(*wrong)
        assert done.returncode == 2
        assert done.stdout == ""


LIGHT: Sequence[Sequence[str]] = [
    ["--help"],
    ["plan", "--help"],
    ["verify", "--help"],
    ["policy", "schema"],
    ["policy", "init", "redact", "-o", "-"],
    ["models", "list"],
]


@pytest.mark.parametrize("arguments", LIGHT, ids=" ".join)
def test_light_commands_load_no_torch(arguments: Sequence[str]) -> None:
    """A CI gate should not wait for a language-model stack, nor have to install one."""
    code = (
        "import sys\nfrom dpredact.cli.main import main\n"
        f"try: main({list(arguments)!r})\n"
        "except SystemExit as end: code = end.code\n"
        "sys.exit(code or ' '.join(m for m in ('torch', 'transformers', 'spacy') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    assert not [m for m in ("torch", "transformers", "spacy") if m in done.stderr], done.stderr


def test_colours_only_on_terminals_that_want_them() -> None:
    """A log file or a pipe gets plain text; so does NO_COLOR."""
    for env in ({}, {"NO_COLOR": "1"}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}):
        done = run("policy", "check", "none.yaml", **env)
        assert "\x1b[3" not in done.stderr
