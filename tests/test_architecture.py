"""The house rules of the source: who imports whom, which door a package enters by.

Imports go downwards only. A room is a file or a folder directly under dpredact/.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "dpredact"
FILES = sorted(PACKAGE.rglob("*.py"))

LOW = {"errors"}
TEXT = LOW | {"documents", "policy", "tagging"}
BELOW_PIPELINE = TEXT | {"contexts", "prompts", "lm", "privacy", "promise", "decoding", "certificate"}
WRITING = {"mixing", "planning", "batching", "writing"}
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "privacy": LOW,
    "lm": LOW,
    "policy": LOW,
    "documents": LOW,
    "tagging": LOW | {"documents", "policy", "lm.catalog"},  # where weights lie; errors only
    "promise": LOW | {"policy", "privacy"},
    "contexts": TEXT | {"promise"},
    "prompts": TEXT | {"contexts", "promise", "lm.interface"},
    "mixing": LOW | {"privacy", "policy", "promise"},
    "decoding": LOW | {"lm", "privacy", "policy", "promise", "mixing"},
    "certificate": LOW | {"policy", "privacy", "promise"},
    "planning": BELOW_PIPELINE - {"decoding"},
    "batching": LOW | {"lm", "privacy", "decoding"},
    "writing": BELOW_PIPELINE | {"planning", "mixing"},
    "pipeline": BELOW_PIPELINE | WRITING,
    "jobs": BELOW_PIPELINE | WRITING | {"pipeline"},
    "evaluation": BELOW_PIPELINE | WRITING | {"pipeline"},
    "cli": BELOW_PIPELINE | WRITING | {"pipeline", "jobs", "evaluation"},
    "__main__": {"cli"},
    "__init__": set(),
}
DOORS = {
    "transformers": ("lm/hf.py", "lm/hf_session.py"),
    "accelerate": "lm/hf.py",
    "spacy": "tagging/spacy_ner.py",
    "onnxruntime": "tagging/onnx_ner.py",
    "yaml": "policy/file.py",
    "docx": "documents/office.py",
    "lxml": "documents/office.py",
    "typer": "cli/",
    "rich": "cli/",
}


def room(file: Path) -> str:
    """`dpredact/lm/hf.py` -> `lm`."""
    return file.relative_to(PACKAGE).with_suffix("").parts[0]


def imports(file: Path) -> list[tuple[int, str]]:
    """(line, dotted name) of everything that `file` imports, also inside functions."""
    found = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: write imports from the root"
            found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return found


def test_imports_go_downwards_only() -> None:
    """Each room imports itself and the rooms below it."""
    wrong = []
    for file in FILES:
        here = room(file)
        assert here in MAY_IMPORT, f"{file}: a new room; say in MAY_IMPORT what it may use"
        for line, name in imports(file):
            parts = name.split(".")
            if parts[0] != "dpredact" or len(parts) < 2 or parts[1] == "__version__":
                continue
            allowed = MAY_IMPORT[here] | {here}
            if parts[1] not in allowed and ".".join(parts[1:3]) not in allowed:
                wrong.append(f"{file.relative_to(PACKAGE)}:{line} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_the_catalog_knows_no_model() -> None:
    """Tagging may ask it where weights lie because it imports nothing else of this house."""
    inside = [n for _, n in imports(PACKAGE / "lm" / "catalog.py") if n.startswith("dpredact.")]
    assert {n.split(".")[1] for n in inside} <= {"errors", "lm"}


def test_every_package_has_one_door() -> None:
    """A third-party package enters by one file, so that it can be exchanged there."""
    wrong = [
        f"{file.relative_to(PACKAGE)}:{line} imports {name}; its door is {DOORS[top]}"
        for file in FILES
        for line, name in imports(file)
        if (top := name.split(".")[0]) in DOORS
        and not file.relative_to(PACKAGE).as_posix().startswith(DOORS[top])
    ]
    assert not wrong, "\n".join(wrong)


def test_only_the_command_line_prints() -> None:
    """Libraries that print cannot be trusted with private text."""
    wrong = [
        f"{file.relative_to(PACKAGE)}:{node.lineno}"
        for file in FILES
        if room(file) != "cli"
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]
    assert not wrong, "\n".join(wrong)


def test_no_drawer_for_odds_and_ends() -> None:
    """A module is named for what it does."""
    assert not [f for f in FILES if f.stem in ("utils", "util", "helpers", "common", "misc")]


def test_sizes_as_a_hint() -> None:
    """A long file is a sign to look, not a fault."""
    for file in FILES:
        lines = len(file.read_text(encoding="utf-8").splitlines())
        if lines > 400:
            warnings.warn(f"{file.relative_to(PACKAGE)}: {lines} lines; one room or two?", stacklevel=1)


@pytest.mark.parametrize("module", [f"dpredact.cli.{f.stem}" for f in FILES if room(f) == "cli"])
def test_command_modules_are_light(module: str) -> None:
    """Importing a command loads none of the heavy packages."""
    heavy = ("torch", "transformers", "spacy", "onnxruntime", "lxml", "docx", "matplotlib")
    code = f"import sys, {module}; sys.exit(' '.join(h for h in {heavy} if h in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert not done.stderr.strip(), f"{module} loads {done.stderr.strip()}"
