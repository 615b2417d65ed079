"""Signed certificates: each way to fail has its own sentence."""

from __future__ import annotations

import base64
import copy
import json
from pathlib import Path
from typing import Any

import pytest

from dpredact.certificate import sign
from dpredact.certificate.sign import SignatureProblem
from dpredact.errors import UsageError

CERTIFICATE = {"predicateType": "urn:example", "predicate": {"epsilon": "8.1", "name": "Zoë"}}


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    sign.generate(tmp_path / "a.key", tmp_path / "a.pub")
    return tmp_path / "a.key", tmp_path / "a.pub"


@pytest.fixture
def envelope(keys: tuple[Path, Path]) -> dict[str, Any]:
    return json.loads(json.dumps(sign.signer(keys[0])(CERTIFICATE)))


def problem(envelope: Any, key: Path) -> str:
    with pytest.raises(SignatureProblem) as caught:
        sign.checked(envelope, key)
    assert caught.value.exit_code == 1 and caught.value.next_step
    return caught.value.message


def test_a_signed_certificate_comes_back_as_it_was(keys: tuple[Path, Path], envelope: Any) -> None:
    assert sign.checked(envelope, keys[1]) == CERTIFICATE == sign.statement(envelope)
    assert envelope["payloadType"] == "application/vnd.in-toto+json"


def test_the_signature_is_ed25519_over_the_dsse_encoding(keys: tuple[Path, Path], envelope: Any) -> None:
    """Checked by hand with the specification's pre-authentication encoding."""
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    payload, kind = base64.b64decode(envelope["payload"]), envelope["payloadType"].encode()
    encoded = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
    key = load_pem_public_key(keys[1].read_bytes())
    key.verify(base64.b64decode(envelope["signatures"][0]["sig"]), encoded)  # type: ignore[union-attr,call-arg]


def test_private_keys_are_for_the_owner_and_never_replaced(keys: tuple[Path, Path], tmp_path: Path) -> None:
    assert keys[0].stat().st_mode & 0o777 == 0o600
    before = keys[0].read_bytes()
    with pytest.raises(UsageError, match="exists already"):
        sign.generate(keys[0], tmp_path / "b.pub")
    with pytest.raises(UsageError, match="exists already"):
        sign.generate(tmp_path / "b.key", keys[1])
    assert keys[0].read_bytes() == before
    assert not (tmp_path / "b.key").exists() and not (tmp_path / "b.pub").exists()


def test_each_fault_has_its_own_sentence(keys: tuple[Path, Path], envelope: Any, tmp_path: Path) -> None:
    sign.generate(tmp_path / "other.key", tmp_path / "other.pub")
    changed = copy.deepcopy(envelope)
    body = json.loads(base64.b64decode(changed["payload"]))
    body["predicate"]["epsilon"] = "0.1"
    changed["payload"] = base64.b64encode(json.dumps(body).encode()).decode()
    unsigned = {**envelope, "signatures": []}
    said = {
        "tampered": problem(changed, keys[1]),
        "wrong key": problem(envelope, tmp_path / "other.pub"),
        "bare": problem(CERTIFICATE, keys[1]),
        "unsigned": problem(unsigned, keys[1]),
        "damaged": problem({**envelope, "payload": "%%%"}, keys[1]),
    }
    assert "changed after it was signed" in said["tampered"]
    assert "another key" in said["wrong key"]
    assert "not signed" in said["bare"] and "no signature" in said["unsigned"]
    assert len(set(said.values())) == 5


def test_another_keys_signature_under_this_keys_name_fails(keys: tuple[Path, Path], envelope: Any, tmp_path: Path) -> None:
    sign.generate(tmp_path / "b.key", tmp_path / "b.pub")
    forged = sign.signer(tmp_path / "b.key")(CERTIFICATE)
    forged["signatures"][0]["keyid"] = envelope["signatures"][0]["keyid"]
    assert "changed after it was signed" in problem(forged, keys[1])


def test_further_signatures_do_no_harm(keys: tuple[Path, Path], envelope: Any) -> None:
    more = {**envelope, "signatures": [{"keyid": "0" * 64, "sig": "AAAA"}, *envelope["signatures"]]}
    assert sign.checked(more, keys[1]) == CERTIFICATE


@pytest.mark.parametrize("change", ["kind", "list", "nothing", "number", "text", "signature"])
def test_garbage_is_a_problem_and_not_a_crash(keys: tuple[Path, Path], envelope: Any, change: str) -> None:
    broken: Any = {
        "kind": {**envelope, "payloadType": "text/plain"},
        "list": {**envelope, "payload": base64.b64encode(b"[1]").decode()},
        "nothing": {"payload": None, "signatures": None},
        "number": {**envelope, "signatures": [1]},
        "text": {**envelope, "payload": base64.b64encode(b"\xff").decode()},
        "signature": {**envelope, "signatures": [{**envelope["signatures"][0], "sig": "%"}]},
    }[change]
    assert problem(broken, keys[1])


def test_only_ed25519_keys_are_taken(keys: tuple[Path, Path], envelope: Any, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    other = ec.generate_private_key(ec.SECP256R1())
    (tmp_path / "ec.key").write_bytes(other.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ))  # fmt: skip
    (tmp_path / "junk").write_bytes(b"junk")
    for path in (tmp_path / "ec.key", tmp_path / "junk", keys[1], tmp_path / "missing"):
        with pytest.raises(UsageError):
            sign.signer(path)
    for path in (tmp_path / "junk", keys[0]):
        with pytest.raises(UsageError):
            sign.checked(envelope, path)
