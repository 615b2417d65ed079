"""`dpredact keygen`: a key pair for signing certificates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    name: Annotated[Path, typer.Argument(help="Writes NAME.key (private) and NAME.pub.")] = Path(
        "dpredact"
    ),
) -> None:
    """Make an Ed25519 key pair: sign with `rewrite --sign NAME.key`, check with
    `verify --key NAME.pub`. Nothing is ever replaced."""
    from dpredact.certificate import sign

    private, public = Path(f"{name}.key"), Path(f"{name}.pub")
    number = sign.generate(private, public)
    typer.echo(f"{private}: private, mode 0600; keep it, and keep it out of the repository", err=True)
    typer.echo(f"{public}: public; give it to whoever checks your certificates", err=True)
    typer.echo(number)
