"""Findings as SARIF 2.1.0, and as GitHub's workflow commands. No words, no line text.

Columns count code points. A fingerprint is made of path, kind and running number, so it
survives moved lines and says nothing about the word.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dpredact import __version__
from dpredact.jobs.checking import RULES, FileCheck, Finding

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def log(checks: Sequence[FileCheck]) -> dict[str, Any]:
    """One SARIF log with one run; unreadable files are notifications of the invocation."""
    rules = [
        {"id": rule, "shortDescription": {"text": text}, "defaultConfiguration": {"level": "error"}}
        for rule, text in RULES.items()
    ]
    unread = [c for c in checks if c.status == "unreadable"]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "dpredact", "version": __version__, "rules": rules}},
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {
                    "SRCROOT": {"description": {"text": "The folder in which check was run."}}
                },
                "invocations": [
                    {
                        "executionSuccessful": not unread,
                        "toolExecutionNotifications": [_notification(c) for c in unread],
                    }
                ],
                "results": list(_results(checks)),
            }
        ],
    }


def _results(checks: Iterable[FileCheck]) -> Iterable[dict[str, Any]]:
    order = list(RULES)
    for check in checks:
        numbers: Counter[str] = Counter()
        for finding in check.findings:
            kind = f"{finding.rule}/{finding.entity}"
            numbers[kind] += 1
            yield {
                "ruleId": finding.rule,
                "ruleIndex": order.index(finding.rule),
                "level": "error",
                "message": {"text": finding.message},
                "locations": [_location(check.path, finding)],
                "partialFingerprints": {
                    "dpredact/v1": _fingerprint(check.path, kind, numbers[kind])
                },
            }


def _location(path: str, finding: Finding) -> dict[str, Any]:
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": _artifact(path)}}
    if finding.line is not None:
        location["physicalLocation"]["region"] = {
            "startLine": finding.line,
            "startColumn": finding.column,
            "endLine": finding.end_line,
            "endColumn": finding.end_column,
        }
    if finding.where:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.where}]
    return location


def _artifact(path: str) -> dict[str, Any]:
    """Relative to the working folder where the file lies below it, else absolute."""
    inside = _relative(path)
    raw = os.fsencode(inside if inside is not None else os.path.abspath(path))
    if inside is not None:
        return {"uri": quote(raw), "uriBaseId": "SRCROOT"}
    return {"uri": "file://" + quote(raw)}


def _notification(check: FileCheck) -> dict[str, Any]:
    return {
        "level": "error",
        "message": {"text": "; ".join(check.problems) or "cannot be read"},
        "locations": [{"physicalLocation": {"artifactLocation": _artifact(check.path)}}],
    }


def _fingerprint(path: str, kind: str, number: int) -> str:
    place = _relative(path) or os.path.abspath(path)
    return hashlib.sha256(os.fsencode(f"{place}\0{kind}\0{number}")).hexdigest()


def _relative(path: str) -> str | None:
    inside = os.path.relpath(os.path.abspath(path))
    return None if inside.startswith(os.pardir) else Path(inside).as_posix()


# -- GitHub -----------------------------------------------------------------------------


def workflow_commands(check: FileCheck) -> Iterable[str]:
    """`::error …` lines, which GitHub shows beside the changed lines."""
    name = _relative(check.path) or check.path
    for finding in check.findings:
        facts = {"file": name}
        if finding.line is not None:
            facts |= {"line": str(finding.line), "col": str(finding.column)}
        facts["title"] = RULES[finding.rule]
        where = f" ({finding.where})" if finding.where else ""
        yield _command(facts, finding.message + where)
    if check.status == "unreadable":
        yield _command({"file": name, "title": "Not readable"}, "; ".join(check.problems))


def _command(facts: dict[str, str], message: str) -> str:
    settings = ",".join(
        f"{key}={_escaped(value).replace(':', '%3A').replace(',', '%2C')}" for key, value in facts.items()
    )
    return f"::error {settings}::{_escaped(message)}"


def _escaped(text: str) -> str:
    safe = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return safe.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
