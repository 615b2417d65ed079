"""`dpredact models`: what the catalog holds, what is here, and how to get the rest."""

from __future__ import annotations

import json
import os
from typing import Annotated, Optional

import typer

from dpredact.errors import UsageError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="List and fetch the models.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@app.command("list")
def list_(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """The catalog: kind, size, licence, source, and whether it is on this machine."""
    from dpredact.lm import catalog

    if as_json:
        for entry in catalog.ENTRIES.values():
            typer.echo(
                json.dumps(
                    {
                        "schema": 1,
                        "name": entry.name,
                        "kind": entry.kind,
                        "present": catalog.present(entry.name),
                        "package": f"{entry.wheel}=={entry.version}",
                        "sha256": entry.sha256,
                        "size": entry.size,
                        "licence": entry.licence,
                        "source": entry.source,
                    }
                )
            )
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("name", "kind", "download", "licence", "here"):
        table.add_column(heading, overflow="fold")
    for entry in catalog.ENTRIES.values():
        here = "yes" if catalog.present(entry.name) else "no"
        size = f"{entry.size / 1e6:.0f} MB"
        table.add_row(entry.name, entry.kind, size, entry.licence, here)
    Console(highlight=False).print(table)
    Console(stderr=True, highlight=False, soft_wrap=True).print(
        f"Kept in {catalog.cache()}. Any causal language model can be used too: give its folder\n"
        "or hub id as `model` in the policy.",
        markup=False,
    )


@app.command()
def fetch(
    names: Annotated[
        Optional[list[str]], typer.Argument(help="Names from the list; default: all of them.")
    ] = None,
) -> None:
    """Download models with pip (pinned, digest checked) into the user cache. Needs network once."""
    # The conversion's own progress bar writes hundreds of lines into a build log.
    os.environ.setdefault("TQDM_DISABLE", "1")
    from dpredact.lm import catalog
    from dpredact.policy.nearest import hint

    wanted = names or list(catalog.ENTRIES)
    for name in wanted:
        if name not in catalog.ENTRIES:
            raise UsageError(
                f"{name} is not in the catalog{hint(name, catalog.ENTRIES)}",
                next_step="fetch other models with their own tools, and give the folder as "
                "`model` in the policy",
            )
    for name in wanted:
        if catalog.present(name):
            typer.echo(f"{name}: already here", err=True)
            continue
        entry = catalog.ENTRIES[name]
        typer.echo(f"{name}: fetching {entry.size / 1e6:.0f} MB ({entry.licence}) …", err=True)
        catalog.fetch(name)
        typer.echo(f"{name}: ready", err=True)
