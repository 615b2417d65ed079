"""The `dpredact` command: its sub-commands, and how errors become exit codes.

Command modules are imported only when their command runs, so `--help` and the commands
that need no language model stay fast. Each module has a function `command`, or a typer
app `app` when it has sub-commands of its own.

Exit codes: 0 done · 1 `check` found something or `verify` says no · 2 usage or policy ·
3 not fully covered · 4 the budget would be exceeded · 5 model or internal error ·
130 interrupted.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import traceback
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from dpredact import __version__
from dpredact.errors import DpredactError, PolicyError

# name -> what the list of commands says; the module is dpredact.cli.<name>.
COMMANDS = {
    "rewrite": "Rewrite documents, each with its certificate.",
    "tags": "Show what is private in a text, and why.",
    "check": "CI gate: find private words that no certificate covers.",
    "plan": "Say what a policy would promise and cost; spends nothing.",
    "verify": "Check a text against its certificate.",
    "policy": "Write, check and explain policies.",
    "models": "List and fetch the models.",
    "eval": "Measure how well it works, on your own annotated data.",
    "doctor": "What is installed here, and what is missing.",
    "keygen": "Make a key pair for signing certificates.",
}

_PACKAGE = Path(__file__).resolve().parent.parent
_INTERNAL = DpredactError.exit_code


class Commands(TyperGroup):
    """Imports a command's module when the command is called, not to list it."""

    _listing = False

    def list_commands(self, ctx: typer.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: typer.Context, name: str) -> Any:
        if name not in COMMANDS:
            return None
        if self._listing:
            return TyperCommand(name, help=COMMANDS[name])
        module = importlib.import_module(f"dpredact.cli.{name}")
        command = _click_command(module, name)
        command.name = name
        return command

    def format_help(self, ctx: typer.Context, formatter: Any) -> None:
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False

    def invoke(self, ctx: typer.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(130) from None
        except BrokenPipeError:
            # Whoever read our output has gone; there is nobody to tell.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(_INTERNAL) from None


def _click_command(module: Any, name: str) -> Any:
    """The module's typer app, or its function `command`, as a click command."""
    app = getattr(module, "app", None)
    if app is None:
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(name, context_settings=_SETTINGS)(module.command)
    return typer.main.get_command(app)


_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings=_SETTINGS,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dpredact {__version__}")
        raise typer.Exit


@app.callback()
def dpredact(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Rewrite documents under differential privacy, each with a certificate anyone can check.

    Start with `dpredact policy init demo -o dpredact.yaml`, then `dpredact rewrite FILE`.
    """


def main(argv: list[str] | None = None) -> NoReturn:
    """Run the command line and leave with its exit code."""
    sys.excepthook = lambda kind, error, trace: _internal(error)
    threading.excepthook = lambda args: _internal(args.exc_value)
    sys.unraisablehook = lambda args: None  # its message could quote a value
    try:
        typer.main.get_command(app).main(args=argv, prog_name="dpredact")
    except DpredactError as error:
        _say(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:  # the one place where everything else ends
        _internal(error)
        sys.exit(_INTERNAL)
    sys.exit(0)


def _say(error: DpredactError) -> None:
    """An error with its place and next step, on stderr."""
    for each in (error, *(error.others if isinstance(error, PolicyError) else ())):
        place = f"{each.place}: " if each.place else ""
        _line("error: ", f"{place}{each.message}")
    if error.next_step:
        _line("  next: ", error.next_step)


def _internal(error: BaseException | None) -> None:
    """A fault of ours: its type and the last line of ours that it passed.

    Neither its message nor any local or cause: they could quote the document.
    """
    where = "outside the package"
    for frame in traceback.extract_tb(error.__traceback__ if error else None):
        path = Path(frame.filename)
        if path.is_relative_to(_PACKAGE):
            where = f"{path.relative_to(_PACKAGE.parent).as_posix()}:{frame.lineno}"
    _line("internal error: ", f"{type(error).__name__} at {where}")
    _line("  next: ", "report this line; it holds nothing of your document")


def _line(head: str, text: str) -> None:
    from rich.console import Console
    from rich.text import Text

    line = Text.assemble((head, "bold red" if "error" in head else "bold"), text)
    Console(stderr=True, soft_wrap=True, highlight=False).print(line)
