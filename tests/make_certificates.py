"""How tests/data/certificates was made: `python -m tests.make_certificates` writes it anew.

One text with a certificate that holds, from a run of a toy model, and one certificate per
fault. Draws come from the operating system, so texts and document ids differ between runs.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpredact import pipeline
from dpredact.certificate import statement
from dpredact.policy import Policy
from tests.pipeline_fakes import WordTagger, writer

FOLDER = Path(__file__).parent / "data" / "certificates"
POLICY = Policy.model_validate(
    {
        "version": 1,
        "model": "toy",
        "max_new_tokens": {"ratio": 1.0, "at_most": 120},
        "chunk_tokens": 60,
        "view_reserve": 32,
        "tagger": {"use": ["patterns"], "lists": "names.yaml"},
        "groups": {
            "PERSON": {"entities": ["PERSON"], "method": "dp-fusion", "beta": 0.02, "order": 2},
            "DATE": {"entities": ["DATE", "TIME", "AGE"], "method": "invisible-ink", "clip": 0.05},
            "PLACE": {"entities": ["LOCATION", "ADDRESS"], "method": "dp-fusion", "epsilon": 9,
                      "order": 3, "spending": "adaptive"},
            "ABSENT": {"entities": ["ORG"], "method": "dp-fusion", "epsilon": 9, "order": 3},
            "CODE": {"entities": ["EMAIL", "PHONE", "CARD", "IBAN", "ID"], "method": "redact"},
        },
    }
)  # fmt: skip
TEXT = "Ida Quennell came on 4 May and wrote to ida@quennell.example.\n\nShe lives in Harrowdale with Ida Quennell.\n"
TAGGER = WordTagger(
    {"Ida Quennell": "PERSON", "4 May": "DATE", "ida@quennell.example": "EMAIL", "Harrowdale": "LOCATION"}
)


def released(*, unsafe_seed: int | None = None, text: str = TEXT) -> pipeline.Release:
    return pipeline.rewrite(text, POLICY, writer(), tagger=TAGGER, unsafe_seed=unsafe_seed)


def group(certificate: dict[str, Any], name: str) -> dict[str, Any]:
    return next(g for g in certificate["predicate"]["groups"] if g["name"] == name)


def lowered(number: str) -> str:
    return format(float(number) - 0.5, ".4f")


def _changed_text(c: dict[str, Any]) -> None:
    c["subject"][0]["digest"]["sha256"] = hashlib.sha256(b"another text").hexdigest()


def _changed_policy(c: dict[str, Any]) -> None:
    c["predicate"]["policy"]["groups"]["PERSON"]["beta"] = 0.01


def _changed_policy_and_digest(c: dict[str, Any]) -> None:
    _changed_policy(c)
    c["predicate"]["policy_sha256"] = statement.policy_digest(c["predicate"]["policy"])


def _no_policy(c: dict[str, Any]) -> None:
    c["predicate"]["policy"]["groups"]["PERSON"]["method"] = "magic"
    c["predicate"]["policy_sha256"] = statement.policy_digest(c["predicate"]["policy"])


def _lowered_chunk_and_total(c: dict[str, Any]) -> None:
    c["predicate"]["chunks"][0]["tokens"] -= 1
    c["predicate"]["max_new_tokens"] -= 1


def _more_tokens(c: dict[str, Any]) -> None:
    c["predicate"]["chunks"][0]["tokens"] += 500
    c["predicate"]["max_new_tokens"] += 500


def _safe_again(c: dict[str, Any]) -> None:
    c["predicate"]["draw"]["source"] = "unsafe seed"


def _at(*keys: str | int, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(c: dict[str, Any]) -> None:
        place: Any = c["predicate"]
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = to(place[keys[-1]]) if callable(to) else to

    return change


# name -> what is done to a good certificate. Groups in order: PERSON DATE PLACE ABSENT CODE.
FAULTS: dict[str, Callable[[dict[str, Any]], None]] = {
    "changed-text": _changed_text,
    "changed-epsilon": _at("groups", 0, "epsilon", to=lowered),
    "epsilon-of-an-adaptive-group": _at("groups", 2, "epsilon", to=lowered),
    "epsilon-zero": _at("groups", 0, "epsilon", to="0"),
    "epsilon-all-lowered": _at("all_groups", "epsilon", to=lowered),
    "changed-policy": _changed_policy,
    "changed-policy-and-digest": _changed_policy_and_digest,
    "not-a-policy": _no_policy,
    "empty-ledger": _at("groups", 0, "ledger", to=[]),
    "shortened-ledger": _at("groups", 0, "ledger", 0, "tokens", to=lambda n: n - 30),
    "smaller-cap": _at("groups", 0, "ledger", 0, "cap", to=0.01),
    "smaller-range": _at("groups", 1, "ledger", 0, "range", to=0.1),
    "smaller-budget": _at("groups", 2, "ledger", 0, "budget", to=lambda b: b / 2),
    "higher-order": _at("groups", 0, "ledger", 0, "order", to=4),
    "smaller-weight": _at("groups", 0, "ledger", 0, "weight", to=0.1),
    "another-kind": _at("groups", 0, "ledger", 0, "kind", to="gaussian"),
    "ledger-of-a-redacted-group": _at("groups", 4, "epsilon", to="1"),
    "unknown-version": lambda c: c.update(predicateType="urn:dpredact:privacy-certificate:v2"),
    "unknown-statement": lambda c: c.update(_type="https://in-toto.io/Statement/v2"),
    "extra-field": lambda c: c["predicate"].update(draws=57),
    "lacking-field": lambda c: c["predicate"].pop("chunks"),
    "missing-group": lambda c: c["predicate"]["groups"].pop(1),
    "foreign-group": _at("groups", 4, "name", to="EXTRA"),
    "group-twice": lambda c: c["predicate"]["groups"].append(copy.deepcopy(group(c, "CODE"))),
    "another-method": _at("groups", 0, "method", to="redact"),
    "more-entities": _at("groups", 0, "entities", to=["PERSON", "ORG"]),
    "changed-assumptions": lambda c: c["predicate"]["assumptions"].pop(0),
    "changed-delta": _at("groups", 0, "delta", to="0.0000001"),
    "delta-zero": _at("groups", 0, "delta", to="0"),
    "delta-all-changed": _at("all_groups", "delta", to="0.0000001"),
    "lowered-chunk": _at("chunks", 0, "tokens", to=lambda n: n - 1),
    "lowered-chunk-and-total": _lowered_chunk_and_total,
    "more-tokens-than-the-policy": _more_tokens,
    "chunk-without-a-view": _at("chunks", 0, "views", to=["DATE"]),
    "foreign-view": _at("chunks", 0, "views", to=["PERSON", "DATE", "CODE"]),
    "another-scope": _at("scope", to="spans"),
    "another-neighbour": _at("neighbours", to="replace"),
    "another-quantisation": _at("draw", "gamma_log2", to=2),
    "large-vocabulary": _at("draw", "tokens", to=10**13),
    "endless-vocabulary": _at("draw", "tokens", to=10**400),
    "unsafe-called-safe": _safe_again,
}


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    good = released()
    (FOLDER / "text.txt").write_bytes(good.data)
    bad = {}
    for name, change in FAULTS.items():
        bad[name] = copy.deepcopy(good.certificate)
        change(bad[name])
    unsafe = released(unsafe_seed=7)
    bad["unsafe-draw"] = unsafe.certificate
    bad["unsafe-draw"]["subject"] = good.certificate["subject"]
    for name, certificate in {"good": good.certificate, **bad}.items():
        text = json.dumps(certificate, ensure_ascii=False, indent=1)
        (FOLDER / f"{name}.cert.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
