"""`dpredact eval speed`: tokens a second, documents a minute, and where the time goes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Optional

import typer


def speed(
    data: Annotated[Optional[Path], typer.Argument(help="JSON lines with `text`: what is read; default a built-in sentence.")] = None,  # fmt: skip
    groups: Annotated[str, typer.Option("--groups", help="m, e.g. 1,3,8.")] = "1,3,8",
    documents: Annotated[str, typer.Option("--documents", help="Side by side, e.g. 1,8.")] = "1,8",
    width: Annotated[int, typer.Option("--width", min=8, help="Tokens of each view.")] = 256,
    tokens: Annotated[int, typer.Option("--tokens", min=2, help="Tokens drawn of each document.")] = 64,
    model: Annotated[str, typer.Option("--model", help="Catalog name, folder or hub id.")] = "smollm2-135m",
    plain: Annotated[bool, typer.Option("--plain/--no-plain", help="Time plain generate too.")] = True,
    tagging: Annotated[bool, typer.Option("--tagging/--no-tagging", help="Time the taggers too.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Tokens a second, documents a minute, memory, and seconds per stage."""
    import time

    from dpredact import lm
    from dpredact.evaluation import speed as timing

    text = _SENTENCE * 40
    if data is not None:
        from dpredact.evaluation import corpus

        text = corpus.read(data, limit=1)[0].text
    tagged = None
    if tagging:
        from dpredact import tagging as taggers
        from dpredact.policy import TaggerSettings

        tagger = taggers.build(TaggerSettings(), None, everything=True)
        tagger.tag(_SENTENCE)  # loads
        started = time.perf_counter()
        tagger.tag(text)
        tagged = {"characters": len(text), "seconds": time.perf_counter() - started}
    loaded = lm.load(model)
    rows = []
    for m in _numbers(groups):
        for n in _numbers(documents):
            one = timing.measure(loaded, text, groups=m, documents=n, width=width, tokens=tokens,
                                 plain=plain, said=lambda line: typer.echo(line, err=True))  # fmt: skip
            rows.append(one.figures())
    if as_json:
        facts = {"model": loaded.name, "device": loaded.device, "dtype": loaded.dtype}
        typer.echo(json.dumps({"schema": 1, **facts, "tagging": tagged, "runs": rows}))
        return
    _page(rows, f"{loaded.name}, {loaded.device}, {loaded.dtype}: {tokens} tokens from {width}")
    if tagged:
        typer.echo(f"tagging: {tagged['characters']} characters in {tagged['seconds']:.2f} s")


_SENTENCE = "Maren Oduya wrote to the office in Harwick on 3 March about the flat she had left. "


def _numbers(text: str) -> list[int]:
    from dpredact.errors import UsageError

    try:
        found = [int(x) for x in text.split(",") if x.strip()]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise UsageError("no list of whole numbers", next_step="write for instance 1,3,8", place=text)
    return found


def _page(rows: list[dict[str, Any]], title: str) -> None:
    from dpredact.cli.eval_bench import _table

    _table(title, ["m", "documents", "rows", "tokens/s", "plain", "ratio", "documents/min", "prefill s",
                   "decode s", "support s", "mixing s", "draw s", "own share", "memory MB"],
           [[str(r["groups"]), str(r["documents"]), str(r["rows"]), f"{r['tokens_per_second']:.1f}",
             f"{r['plain_tokens_per_second']:.1f}" if "ratio" in r else "–",
             f"{r['ratio']:.2f}" if "ratio" in r else "–", f"{r['documents_per_minute']:.1f}",
             *(f"{r[k]:.2f}" for k in ("prefill", "decode", "support", "mixing", "draw")),
             f"{100 * r['own_share']:.0f}%", f"{r['memory'] / 1e6:.0f}"] for r in rows])  # fmt: skip
