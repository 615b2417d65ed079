"""dpredact's taggers beside Presidio's default analyzer, on the same documents, in one run.

    python scripts/compare_presidio.py --data FOLDER --presidio-python VENV/bin/python

Both use the same small English spaCy pipeline from dpredact's cache. Presidio runs in an
environment of its own, with the configuration it ships except for the name of the model.
Documents that the trained tagger saw are left out. What is asked: is every letter of a
mention found, as whatever (recall), and which share of the found characters is in a mention
(precision). Findings of kinds that a corpus does not annotate are left out for both.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

CORPORA = ("presidio", "contextual", "gum", "panorama")


def work(folder: str) -> None:
    """In Presidio's environment: texts on stdin, spans on stdout, one JSON value a line."""
    import presidio_analyzer
    import yaml
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import NlpEngineProvider

    home = Path(presidio_analyzer.__file__).parent
    settings = yaml.safe_load((home / "conf" / "default.yaml").read_text(encoding="utf-8"))
    settings["models"] = [{"lang_code": "en", "model_name": folder}]
    provider = NlpEngineProvider(nlp_configuration=settings)
    engine = AnalyzerEngine(nlp_engine=provider.create_engine(), supported_languages=["en"])
    for line in sys.stdin:
        found = engine.analyze(json.loads(line), language="en")
        print(json.dumps([(r.start, r.end, r.entity_type, r.score) for r in found]), flush=True)


def presidio_spans(python: str, folder: Path, texts: list[str]) -> list[list[tuple]]:
    """Presidio's findings as (start, end, our entity), text by text."""
    from dpredact.tagging.presidio import entity_of

    done = subprocess.run(
        [python, __file__, "--worker", str(folder)],
        input="".join(json.dumps(t) + "\n" for t in texts),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return [[(a, b, entity_of(kind) or "MISC") for a, b, kind, _ in row] for row in rows]


def score(examples: list, found: list[list[tuple]], classes: set[str]) -> str:
    """recall and precision in one line, with the numbers of mentions and people."""
    from dpredact.evaluation import spans
    from dpredact.tagging.interface import Span

    result = spans.Result()
    for example, row in zip(examples, found, strict=True):
        kept = [Span(a, b, e) for a, b, e in row if spans.class_of(e) in classes]
        spans.count(result, example, kept)
    total = result.total
    return (
        f"{spans.share(total.covered, total.mentions):8.3f}"
        f"{spans.share(total.characters_found, total.characters):8.3f}"
        f"{precision(examples, found, classes):11.3f}"
        f"{result.persons_covered:9}/{result.persons}"
    )


def precision(examples: list, found: list[list[tuple]], classes: set[str]) -> float:
    """Share of found characters that lie in a mention; a character counts once."""
    from dpredact.evaluation import spans

    right = all_found = 0
    for example, row in zip(examples, found, strict=True):
        gold = _mask(len(example.text), ((g.start, g.end) for g in example.gold))
        mask = _mask(
            len(example.text), ((a, b) for a, b, e in row if spans.class_of(e) in classes)
        )
        all_found += sum(mask)
        right += sum(a and b for a, b in zip(gold, mask, strict=True))
    return right / max(all_found, 1)


def _mask(length: int, ranges: Iterable[tuple[int, int]]) -> bytearray:
    mask = bytearray(length)
    for start, end in ranges:
        mask[start:end] = b"\1" * (end - start)
    return mask


def compare(data: Path, python: str, splits: list[str], corpora: list[str]) -> None:
    import tagger_corpora

    from dpredact import tagging
    from dpredact.evaluation import spans
    from dpredact.lm import catalog
    from dpredact.policy import TaggerSettings

    everything = ("patterns", "spacy", "onnx", "trained")
    ours = tagging.build(TaggerSettings(use=everything), everything=True)
    print(f"{'corpus (held out)':22}{'tagger':12}{'covered':>8}{'chars':>8}{'precision':>11}{'people':>12}")
    for corpus in corpora:
        examples = [
            spans.Example(
                str(number), d.text,
                tuple(
                    spans.Gold(a, b, label, kind, d.text[a:b] if spans.class_of(label) == "PERSON" else None)
                    for a, b, label, kind in d.gold if kind != "NO_MASK"
                ),
            )
            for number, d in enumerate(tagger_corpora.read(data, corpus)) if d.split in splits
        ]  # fmt: skip
        classes = {spans.class_of(g.label) for e in examples for g in e.gold}
        theirs = presidio_spans(python, catalog.folder("en-core-web-sm"), [e.text for e in examples])
        found = [[(s.start, s.end, s.entity) for s in ours.tag(e.text).spans] for e in examples]
        for name, row in (("presidio", theirs), ("dpredact", found)):
            print(f"{corpus:22}{name:12}{score(examples, row, classes)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the corpora")
    parser.add_argument("--presidio-python", help="python of an environment with presidio-analyzer")
    parser.add_argument("--split", nargs="+", default=["test"], help="train dev: what was trained on; only Presidio's row counts")
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA), choices=CORPORA)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        work(args.worker)
    elif args.data and args.presidio_python:
        compare(args.data, args.presidio_python, args.split, args.corpora)
    else:
        parser.error("--data and --presidio-python are needed")


if __name__ == "__main__":
    main()
