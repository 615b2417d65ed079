"""`dpredact policy`: write a preset, check a file, print the schema, say what it promises."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Annotated, Optional

import typer

from dpredact.errors import PolicyError, UsageError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Write, check and explain policies.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

File = Annotated[
    Optional[Path],
    typer.Argument(help="Policy file; default: DPREDACT_POLICY or the nearest dpredact.yaml."),
]


@app.command()
def init(
    preset: Annotated[str, typer.Argument(help="demo, paper, strict, spans or redact")] = "demo",
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to write; - is stdout.")
    ] = Path("dpredact.yaml"),
    force: Annotated[bool, typer.Option(help="Overwrite the file if it is there.")] = False,
    show: Annotated[bool, typer.Option("--list", help="List the presets and stop.")] = False,
) -> None:
    """Write a commented policy to start from."""
    from dpredact.policy import presets

    if show:
        for name, line in presets.PRESETS.items():
            typer.echo(f"{name:8} {line}")
        return
    text = presets.text(preset)
    if str(output) == "-":
        typer.echo(text, nl=False)
        return
    try:
        with output.open("w" if force else "x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except FileExistsError:
        raise UsageError(
            "this file is already there",
            next_step="give another name with -o, or --force to overwrite it",
            place=str(output),
        ) from None
    except OSError as error:
        raise UsageError(
            f"cannot write the file: {error.strerror}", place=str(output)
        ) from None
    typer.echo(f"{output}: written. Next: `dpredact policy explain {output}`", err=True)


@app.command()
def check(
    file: File = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Check a policy file: every fault with its line and column."""
    from dpredact.policy import find
    from dpredact.policy.file import check_file

    path = find(file)
    policy, faults = check_file(path)
    if as_json:
        typer.echo(
            json.dumps(
                {
                    "schema": 1,
                    "path": str(path),
                    "valid": policy is not None,
                    "faults": [{"place": f.place, "message": f.message} for f in faults],
                }
            )
        )
    if policy is None:
        if as_json:
            raise typer.Exit(PolicyError.exit_code)
        faults[0].others = tuple(faults[1:])
        raise faults[0]
    if not as_json:
        typer.echo(f"{path}: valid. Groups: {', '.join(policy.groups)}", err=True)


@app.command()
def schema() -> None:
    """Print the JSON Schema of policies, version 1, for editors."""
    from dpredact.policy.model import json_schema

    typer.echo(json.dumps(json_schema(), indent=2, ensure_ascii=False))


@app.command()
def explain(
    file: File = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Say in sentences what a policy promises, and what it does not."""
    from dpredact.policy import find, load
    from dpredact.policy.explain import explain as sections

    path = find(file)
    told = sections(load(path))
    if as_json:
        parts = [{"title": s.title, "sentences": s.sentences} for s in told]
        typer.echo(json.dumps({"schema": 1, "path": str(path), "sections": parts}, ensure_ascii=False))
        return
    for section in told:
        typer.echo(section.title)
        for sentence in section.sentences:
            typer.echo(textwrap.fill(sentence, 88, initial_indent="  - ", subsequent_indent="    "))
        typer.echo("")
