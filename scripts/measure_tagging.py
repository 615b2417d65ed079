"""Speed of the taggers on one core, and their memory over many documents.

    OMP_NUM_THREADS=1 python scripts/measure_tagging.py TEXTS.jsonl --documents 5000

TEXTS.jsonl holds one object with `text` a line; the documents are used over and over. Each
gets words of its own, so nothing can be answered from a cache.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
from pathlib import Path

from dpredact import tagging
from dpredact.policy import TaggerSettings

PAGE = os.sysconf("SC_PAGE_SIZE")


def resident() -> int:
    """Megabytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE // 2**20


def texts(file: Path) -> itertools.cycle:
    rows = [json.loads(line)["text"] for line in file.read_text(encoding="utf-8").splitlines()]
    return itertools.cycle(rows)


def speed(use: tuple[str, ...], file: Path, characters: int) -> None:
    """Characters a second, merging and propagation included."""
    tagger = tagging.build(TaggerSettings(use=use), everything=True)
    tagger.tag("Warm up: Odalys Brennwald came on 3 March.")
    done, began = 0, time.process_time()
    for number, text in enumerate(texts(file)):
        if done >= characters:
            break
        tagger.tag(f"{text}\nNumber {number}.")
        done += len(text)
    print(f"{'+'.join(use):36}{done / (time.process_time() - began):12,.0f} characters/s")


def memory(use: tuple[str, ...], file: Path, documents: int) -> None:
    """Resident memory as the documents go by."""
    tagger = tagging.build(TaggerSettings(use=use), everything=True)
    for number, text in enumerate(itertools.islice(texts(file), documents)):
        tagger.tag(f"{text[:300]}\nWritten by Qw{number:x}alda Zz{number:x}mond.")
        if number in (100, 500) or (number + 1) % max(1, documents // 5) == 0:
            print(f"{number + 1:7} documents {resident():6} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--documents", type=int, default=5000)
    parser.add_argument("--characters", type=int, default=100_000)
    args = parser.parse_args()
    for use in (
        ("patterns",), ("spacy",), ("onnx",), ("patterns", "spacy", "onnx"),
        ("patterns", "spacy", "onnx", "trained"),
    ):  # fmt: skip
        speed(use, args.file, args.characters)
    if args.documents:
        memory(("patterns", "spacy", "onnx", "trained"), args.file, args.documents)


if __name__ == "__main__":
    main()
