"""`dpredact doctor`: what is installed here, what it can do, and what is missing."""

from __future__ import annotations

import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

import typer

# package -> who needs it
PACKAGES = {
    "pydantic": "policies",
    "spacy": "tagging",
    "onnxruntime": "tagging",
    "torch": "rewrite with a language model",
    "transformers": "rewrite with a language model",
    "accelerate": "models on several devices",
    "securesystemslib": "signing",
}
OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")


def command(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Show versions, device, models and the offline state; exit 5 if `rewrite` cannot run."""
    facts = _facts()
    if as_json:
        typer.echo(json.dumps(facts))
    else:
        _show(facts)
    if facts["missing"]:
        raise typer.Exit(5)


def _facts() -> dict[str, Any]:
    from dpredact import __version__
    from dpredact.lm import catalog

    packages = {name: _version_of(name) for name in PACKAGES}
    models = {name: catalog.present(name) for name in catalog.ENTRIES}
    missing = [
        f"package {name} (for {PACKAGES[name]}): pip install 'dpredact[lm]'"
        for name in ("torch", "transformers", "accelerate")
        if packages[name] is None
    ]
    missing += [
        f"model {name}: dpredact models fetch {name}" for name, here in models.items() if not here
    ]
    return {
        "schema": 1,
        "dpredact": __version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "packages": packages,
        **_device(packages["torch"] is not None and packages["transformers"] is not None),
        "models": models,
        "cache": str(catalog.cache()),
        "offline": {name: os.environ[name] for name in OFFLINE if name in os.environ},
        "downloads": "only by `dpredact models fetch` or --allow-download",
        "missing": missing,
    }


def _version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _device(installed: bool) -> dict[str, str | None]:
    """Device and number type that `rewrite` would choose."""
    if not installed:
        return {"device": None, "dtype": None}
    try:
        from dpredact.lm import hf

        device = hf.default_device()
        return {"device": device, "dtype": str(hf.default_dtype(device)).removeprefix("torch.")}
    except Exception as error:  # a broken installation is what this command is to report
        return {"device": f"unusable ({type(error).__name__})", "dtype": None}


def _show(facts: dict[str, Any]) -> None:
    rows = [
        ("dpredact", facts["dpredact"]),
        ("python", f"{facts['python']} on {facts['platform']}, {facts['cores']} cores"),
        *((name, found or "not installed") for name, found in facts["packages"].items()),
        ("device", f"{facts['device'] or 'none'}, {facts['dtype'] or 'no number type'}"),
        *((f"model {n}", "here" if ok else "not fetched") for n, ok in facts["models"].items()),
        ("model cache", facts["cache"]),
        ("downloads", facts["downloads"]),
        *facts["offline"].items(),
    ]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        typer.echo(f"{name:{width}}  {value}")
    for line in facts["missing"]:
        typer.echo(f"missing: {line}", err=True)
    if not facts["missing"]:
        typer.echo("everything that `rewrite` needs is here", err=True)
