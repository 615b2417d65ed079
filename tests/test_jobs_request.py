"""What tells one model's weights from another's in the journal."""

from __future__ import annotations

from pathlib import Path

from dpredact.jobs import request
from dpredact.lm import catalog
from dpredact.policy import loads


def policy(model: str, method: str = "dp-fusion, epsilon: 20") -> object:
    return loads(
        f"version: 1\nmodel: {model}\ngroups: {{other: {{entities: [PERSON], method: {method}}}}}\n"
    )


def test_weights_are_told_apart_by_catalog_digest_or_by_files(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"1")
    first = request._weights(policy(str(tmp_path)))  # type: ignore[arg-type]
    (tmp_path / "model.safetensors").write_bytes(b"12")
    assert first and request._weights(policy(str(tmp_path))) != first  # type: ignore[arg-type]
    named = request._weights(policy("smollm2-135m"))  # type: ignore[arg-type]
    assert named == catalog.ENTRIES["smollm2-135m"].sha256
    assert request._weights(policy("smollm2-135m", "redact")) == ""  # type: ignore[arg-type]
    assert request._weights(policy("nowhere/at-all")) == ""  # type: ignore[arg-type]
