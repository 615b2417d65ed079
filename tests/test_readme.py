"""The README is run: its commands work, and say what it says that they say.

Console blocks are run in order in one folder with the samples and configs. Their output is
compared with numbers and white space set aside, or exactly after `<!-- exact CODE -->`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"(?:<!-- exact ?(?P<code>\d*) -->\n)?```(?P<kind>\w+)\n(?P<body>.*?)```", re.S)
NOT_HERE = ("make ", "pip install ")  # these make the environment that the tests run in


@dataclass(frozen=True)
class Step:
    """One command of a console block, and what the README shows below it."""

    command: str
    shown: str
    exact: bool
    code: int


def blocks(kind: str) -> list[re.Match[str]]:
    return [m for m in BLOCK.finditer(README) if m["kind"] == kind]


def steps() -> list[Step]:
    found = []
    for block in blocks("console"):
        exact = block["code"] is not None
        for part in block["body"].split("$ ")[1:]:
            command, _, shown = part.partition("\n")
            found.append(Step(command, shown, exact, int(block["code"] or 0)))
    return found


def likeness(text: str) -> str:
    """`text` without its numbers and white space: those depend on machine and chance."""
    return re.sub(r"\s+", " ", re.sub(r"\d[\d.,]*", "#", text)).strip()


def test_the_first_two_commands_are_the_two_commands() -> None:
    """make demo and make test, and the Makefile has them."""
    first = [s.command for s in steps()][:2]
    assert first == ["make demo", "make test"]
    for command, works in zip(first, ("scripts/demo.py", "-m pytest"), strict=True):
        plan = subprocess.run([*command.split(), "-n"], cwd=ROOT, capture_output=True, text=True)
        assert works in plan.stdout


def test_the_commands_do_what_the_readme_shows(tmp_path: Path) -> None:
    """All of them in order, as a newcomer would type them; one draws from the real model."""
    for folder in ("samples", "configs"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / ".git").mkdir()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "COLUMNS": "120", "DPREDACT_STATE": str(tmp_path / "state")}
    run = 0
    for step in steps():
        if step.command.startswith(NOT_HERE):
            continue
        done = subprocess.run(
            ["bash", "-c", step.command], cwd=tmp_path, env=env, text=True, timeout=550,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == step.code, f"$ {step.command}\n{done.stdout}"
        if step.exact:
            assert done.stdout == step.shown, step.command
        elif step.shown:
            assert likeness(done.stdout) == likeness(step.shown), step.command
        run += 1
    assert run >= 12
    assert "Dunmore" not in (tmp_path / "note.txt").read_text(encoding="utf-8")


def test_the_policy_and_the_word_lists_are_read(tmp_path: Path) -> None:
    """The examples in YAML are whole and valid, except the one line about a model."""
    from dpredact.policy import loads, read_yaml
    from dpredact.tagging import wordlist

    policy, lists, model = (block["body"] for block in blocks("yaml"))
    assert set(loads(policy).groups) == {"PERSON", "PLACE", "DATE", "CODE", "ORG"}
    (tmp_path / "words.yaml").write_text(lists, encoding="utf-8")
    read = wordlist.parse(read_yaml(tmp_path / "words.yaml"))
    assert (len(read.deny), len(read.allow), len(read.subjects)) == (2, 1, 2)
    assert loads(policy.replace("model: smollm2-135m", model)).model == "/models/my-7b-instruct"


def test_the_python_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the toy model in the policy and a Word file in the folder."""
    import docx

    monkeypatch.chdir(tmp_path)
    letter = docx.Document()
    letter.add_paragraph("Please write to saskia@example.org before noon, the form is enclosed.")
    letter.save("letter.docx")
    Path("dpredact.yaml").write_text(
        "version: 1\nmodel: toy\ntagger: {use: [patterns]}\nmax_new_tokens: 80\ngroups:\n"
        "  MAIL: {entities: [EMAIL], method: dp-fusion, epsilon: 12}\n"
        "  other: {entities: [PERSON], method: redact}\n"
    )
    (block,) = blocks("python")
    exec(compile(block["body"], "README.md", "exec"), {})
    assert "'MAIL': '12'" in capsys.readouterr().out


def test_every_command_is_in_the_table() -> None:
    """A command that nobody can find is not there."""
    from dpredact.cli.main import COMMANDS

    assert re.findall(r"^\| `(\w+)` \|", README, re.M)[: len(COMMANDS)] == list(COMMANDS)


def test_the_demo_shows_every_sample_with_its_promises(tmp_path: Path) -> None:
    """The script behind `make demo`, with labels only so that it is quick."""
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "demo.py", "--output", tmp_path / "out",
         "--policy", ROOT / "configs" / "redact.yaml"],
        capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("the certificate holds") == 4
    assert done.stdout.count("all together") == 4
    for sample in (ROOT / "samples").glob("*.txt"):
        assert f"─ samples/{sample.name} ─" in done.stdout
    assert "[PERSON] has worked for" in done.stdout
