"""`dpredact eval`: measure recall, attacks, utility and speed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

if TYPE_CHECKING:
    from dpredact.evaluation.spans import Counts, Result

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Measure recall, attacks, utility and speed.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@app.callback()
def evaluate() -> None:
    """Measure recall, attacks, utility and speed."""


@app.command()
def tags(
    data: Annotated[
        Path,
        typer.Argument(
            help="JSON lines: text, spans (start, end, label; code points; optional "
            "identifier_type, entity_id), optional id and split."
        ),
    ],
    policy: Annotated[
        Optional[Path], typer.Option("--policy", help="Use this policy's tagger and groups.")
    ] = None,
    use: Annotated[
        Optional[str], typer.Option("--use", help="Taggers, e.g. patterns,spacy,onnx,trained.")
    ] = None,
    language: Annotated[
        Optional[str], typer.Option("--language", help="Language of the texts: en, es, fr, de, da.")
    ] = None,
    split: Annotated[
        Optional[str], typer.Option("--split", help="Only documents whose `split` is this.")
    ] = None,
    limit: Annotated[
        Optional[int], typer.Option("--limit", min=1, help="Only the first N documents.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    show_values: Annotated[
        bool, typer.Option("--show-values", help="Print the missed words too: they are private.")
    ] = False,
) -> None:
    """Recall and precision of the taggers against annotated documents.

    A mention is covered if every letter of it lies in findings; a person is covered if all
    mentions are. Spans of identifier_type NO_MASK are not asked for. Without a policy all
    entity types are looked for, the optional ones too.
    """
    from itertools import islice

    from dpredact.evaluation import spans

    if not data.is_file():
        from dpredact.errors import UsageError

        raise UsageError("no such file", next_step="name a JSON-lines file", place=str(data))
    tagger = _tagger(policy, use, language)
    examples = islice(spans.read(data, split), limit)
    result = spans.measure(tagger, examples, words=show_values)
    if as_json:
        out = result.public()
        if show_values:
            out["missed"] = [
                {"document": d, "start": s, "words": w} for d, s, w in result.missed_words
            ]
        typer.echo(json.dumps(out, ensure_ascii=False))
        return
    _print(result)
    for document, start, words in result.missed_words:
        typer.echo(f"  {document} @{start}: {words!r}")


def _tagger(policy: Path | None, use: str | None, language: str | None):  # type: ignore[no-untyped-def]
    from dpredact import tagging
    from dpredact.policy import TaggerSettings, load

    rules = load(policy) if policy else None
    settings = rules.tagger if rules else TaggerSettings()
    changes: dict[str, object] = {}
    if use:
        changes["use"] = tuple(name.strip() for name in use.split(","))
    if language:
        changes["language"] = language
    return tagging.build(settings.model_copy(update=changes), rules, everything=True)


def _print(result: Result) -> None:
    from dpredact.evaluation.spans import share

    typer.echo(
        f"{result.documents} documents, {result.characters} characters"
        + (f", {result.incomplete} not read in full" if result.incomplete else "")
    )
    typer.echo(f"\n{'label':24}{'mentions':>9}{'strict':>9}{'covered':>9}{'touched':>9}{'chars':>9}")
    for name, counts in sorted(result.by_label.items()):
        typer.echo(_row(name, counts))
    for name, counts in sorted(result.by_kind.items()):
        typer.echo(_row(f"all {name}", counts))
    typer.echo(_row("all", result.total))
    typer.echo(f"\n{'found as':24}{'findings':>9}{'right':>9}{'chars right':>13}")
    for name, one in sorted(result.by_entity.items()):
        right, characters = share(one.right, one.findings), share(
            one.characters_right, one.characters
        )
        typer.echo(f"{name:24}{one.findings:9}{right:9.3f}{characters:13.3f}")
    found = result.found
    typer.echo(f"{'precision of characters':46}{share(found.characters_right, found.characters):9.3f}")
    typer.echo(
        f"\npeople with every mention covered: {result.persons_covered} of {result.persons}"
    )
    if result.typed:
        typer.echo(f"\n{'nervaluate':24}{'precision':>10}{'recall':>9}{'F1':>9}")
        for name, one in result.typed.items():
            typer.echo(f"{name:24}{one['precision']:10.3f}{one['recall']:9.3f}{one['f1']:9.3f}")
    if result.misses:
        typer.echo("\nmissed, by kind:")
        for (label, how, writing), n in result.misses.most_common(20):
            typer.echo(f"{n:6}  {label}, {how}, {writing}")


def _row(name: str, counts: Counts) -> str:
    s = counts.shares()
    return (
        f"{name:24}{counts.mentions:9}{s['strict']:9.3f}{s['covered']:9.3f}"
        f"{s['touched']:9.3f}{s['characters']:9.3f}"
    )


from dpredact.cli import eval_audit, eval_bench, eval_speed  # noqa: E402

for _command in (eval_bench.attack, eval_audit.audit, eval_bench.utility, eval_speed.speed,
                 eval_bench.curve, eval_bench.paper, eval_bench.nll):  # fmt: skip
    app.command()(_command)
