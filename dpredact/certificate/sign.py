"""Signed certificates: a DSSE envelope around the in-toto statement, Ed25519 keys.

The only door for securesystemslib and cryptography (extra `sign`). What is signed are the
bytes of the statement inside the envelope, so nothing has to be made canonical. Unwrapping
an envelope without checking it (`statement`) needs neither package.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dpredact.errors import DpredactError, Missing, UsageError

PAYLOAD_TYPE = "application/vnd.in-toto+json"
_FIELDS = ("payload", "payloadType", "signatures")


class SignatureProblem(DpredactError):
    """The signature does not vouch for the certificate. `message` says which way."""

    exit_code = 1


def is_envelope(value: Any) -> bool:
    """Does this look like a DSSE envelope, rather than a bare certificate?"""
    return isinstance(value, Mapping) and any(field in value for field in _FIELDS)


def statement(envelope: Mapping[str, Any]) -> dict[str, Any]:
    """The certificate inside an envelope; its signature is NOT checked.

    Raises SignatureProblem if there is none.
    """
    payload, _ = _opened(envelope)
    return payload


def generate(private: Path, public: Path) -> str:
    """Write a new Ed25519 pair: PKCS#8 PEM with mode 0600, and SubjectPublicKeyInfo PEM.

    Returns the key id (SHA-256 of the public key, as securesystemslib counts it). Raises
    UsageError rather than replace a file; then neither is written.
    """
    _library()
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from securesystemslib.signer import CryptoSigner

    key = Ed25519PrivateKey.generate()
    pair = CryptoSigner(key)
    public_bytes = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    written: list[Path] = []
    try:
        for path, data, mode in ((private, pair.private_bytes, 0o600), (public, public_bytes, 0o644)):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            written.append(path)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
    except OSError as error:
        for done in written:
            done.unlink(missing_ok=True)
        exists = isinstance(error, FileExistsError)
        raise UsageError(
            "a file of this name exists already" if exists else f"cannot be written: {error.strerror}",
            next_step="choose another name; a key is never replaced",
            place=str(error.filename or private),
        ) from None
    return str(pair.public_key.keyid)


def signer(private: Path) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """A function that wraps a certificate in a signed envelope.

    Raises UsageError if the file holds no Ed25519 private key.
    """
    _library()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from securesystemslib.dsse import Envelope
    from securesystemslib.signer import CryptoSigner

    try:
        key = load_pem_private_key(_read(private), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(
            "this file holds no Ed25519 private key without a passphrase",
            next_step="`dpredact keygen` makes one",
            place=str(private),
        )
    by = CryptoSigner(key)

    def sign(certificate: Mapping[str, Any]) -> dict[str, Any]:
        payload = json.dumps(certificate, ensure_ascii=False).encode("utf-8")
        envelope = Envelope(payload, PAYLOAD_TYPE, {})
        envelope.sign(by)
        return envelope.to_dict()

    return sign


def checked(envelope: Any, public: Path) -> dict[str, Any]:
    """The certificate inside `envelope`, vouched for by the key in `public`.

    Raises SignatureProblem with a sentence of its own for: no signature, another key's
    signature, content that was changed after signing, an envelope that cannot be read.
    Raises UsageError if `public` holds no Ed25519 public key.
    """
    _library()
    from securesystemslib.dsse import Envelope
    from securesystemslib.exceptions import VerificationError

    key = _public_key(public)
    if not is_envelope(envelope):
        raise SignatureProblem(
            "the certificate is not signed", next_step="ask for a signed one (rewrite --sign)"
        )
    payload, signatures = _opened(envelope)
    if not signatures:
        raise SignatureProblem(
            "the envelope holds no signature", next_step="ask for a signed one (rewrite --sign)"
        )
    own = [s for s in signatures if s.get("keyid") == key.keyid]
    if not own:
        raise SignatureProblem(
            "it is signed with another key than the one given",
            next_step="check whose key it should be",
        )
    try:
        # Only this key's signature is looked at: others add nothing and take nothing away.
        found = Envelope.from_dict({**envelope, "signatures": [dict(own[0])]})
        found.verify([key], 1)
    except (VerificationError, ValueError, KeyError, TypeError):
        raise SignatureProblem(
            "the signature does not fit: the envelope was changed after it was signed",
            next_step="get the certificate again from whoever signed it",
        ) from None
    return payload


# -- inside -----------------------------------------------------------------------------


def _opened(envelope: Mapping[str, Any]) -> tuple[dict[str, Any], list[Mapping[str, Any]]]:
    """Payload and signatures of an envelope. Raises SignatureProblem."""
    try:
        if envelope["payloadType"] != PAYLOAD_TYPE:
            raise ValueError
        payload = json.loads(base64.b64decode(envelope["payload"], validate=True))
        signatures = envelope["signatures"]
        if not isinstance(payload, dict) or not isinstance(signatures, list):
            raise ValueError
        if not all(isinstance(s, Mapping) for s in signatures):
            raise ValueError
    except (KeyError, TypeError, ValueError, binascii.Error, RecursionError):
        raise SignatureProblem(
            "the envelope is damaged: no certificate can be read from it",
            next_step="get the certificate again from whoever signed it",
        ) from None
    return payload, signatures


def _public_key(path: Path) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
    from securesystemslib.signer import SSlibKey

    try:
        key = load_pem_public_key(_read(path))
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise UsageError(
            "this file holds no Ed25519 public key",
            next_step="give the .pub file that `dpredact keygen` wrote",
            place=str(path),
        )
    return SSlibKey.from_crypto(key)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"the key cannot be read: {(error.strerror or '').lower()}",
            next_step="check the path",
            place=str(path),
        ) from None


def _library() -> None:
    try:
        import cryptography  # noqa: F401
        import securesystemslib  # noqa: F401
    except ImportError:
        raise Missing(
            "signing needs the extra `sign`", next_step="pip install 'dpredact[sign]'"
        ) from None
