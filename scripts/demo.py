"""`make demo`: rewrite samples/ with the demo policy, verify, and show what came out.

It runs the commands that a user would type, prints them, and puts their results side by
side. Nothing is shown that is not in the files: input, output, certificate.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
console = Console(highlight=False, width=None if sys.stdout.isatty() else 100)


def shown(path: Path) -> str:
    """`path` as a person in the repository would type it."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def dpredact(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command, show it, and keep its stdout."""
    words = [shown(a) if isinstance(a, Path) else a for a in arguments]
    console.print(Text(f"$ dpredact {' '.join(words)}", style="bold"))
    return subprocess.run(
        [sys.executable, "-m", "dpredact", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


def json_lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def predicate(certificate: Path) -> dict[str, Any]:
    return json.loads(certificate.read_text(encoding="utf-8"))["predicate"]


def opening(file: Path, length: int = 420) -> str:
    """The first words of a file, cut at a word."""
    text = file.read_text(encoding="utf-8").strip()
    return text if len(text) <= length else text[:length].rsplit(None, 1)[0] + " …"


def promises(claim: dict[str, Any], found: Counter[str]) -> Table:
    """What was protected in one document: group, mentions, method, ε."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading, justify in (("group", "left"), ("words tagged", "right"), ("method", "left"),
                             ("ε", "right"), ("δ", "right")):  # fmt: skip
        table.add_column(heading, justify=justify)
    for group in claim["groups"]:
        mentions = sum(found[name] for name in group["members"])
        table.add_row(group["name"], str(mentions), group["method"], group["epsilon"], group["delta"])
    every = claim["all_groups"]
    table.add_row("all together", str(found.total()), "", every["epsilon"], every["delta"], style="bold")
    return table


def show(record: dict[str, Any], spans: list[dict[str, Any]]) -> None:
    """One document: input, output, promises."""
    source, output = Path(record["path"]), Path(record["output"])
    found = Counter(str(s["group"]) for s in spans)
    console.print()
    console.print(Panel(Text(opening(ROOT / source)), title=str(source), title_align="left"))
    console.print(Panel(Text(opening(ROOT / output)), title=str(output), title_align="left"))
    console.print(promises(predicate(ROOT / record["certificate"]), found))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=Path, default=ROOT / "samples")
    parser.add_argument("--output", type=Path, default=ROOT / "demo-output")
    parser.add_argument("--policy", type=Path, default=ROOT / "configs" / "demo.yaml")
    wanted = parser.parse_args()
    begun = time.monotonic()
    rewritten = dpredact(
        "rewrite", wanted.samples, "-o", wanted.output, "--policy", wanted.policy,
        "--again", "--allow-cut", "--json",
    )  # fmt: skip
    records = [r for r in json_lines(rewritten.stdout) if r.get("output")]
    if rewritten.returncode or not records:
        console.print(f"rewrite ended with exit code {rewritten.returncode}", style="bold red")
        return rewritten.returncode or 1
    tagged = dpredact("tags", wanted.samples, "--policy", wanted.policy, "--json")
    spans = {line["path"]: line["spans"] for line in json_lines(tagged.stdout)}
    worst = 0
    for record in records:
        verified = dpredact("verify", ROOT / record["output"])
        console.print(Text(verified.stdout.rstrip()))
        worst = max(worst, verified.returncode)
    for record in records:
        show(record, spans.get(record["path"], []))
    console.print()
    console.print(
        f"{len(records)} documents in {time.monotonic() - begun:.0f} s. The texts and their "
        f"certificates lie in {shown(wanted.output)}. The small model is for trying "
        "it out: its prose is poor."
    )
    return worst


if __name__ == "__main__":
    sys.exit(main())
