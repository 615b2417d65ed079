"""Hooks, action and images: what they call exists, and the action's script does what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpredact.cli.main import main

ROOT = Path(__file__).parent.parent
POLICY = """\
version: 1
tagger: {use: [patterns]}
groups: {other: {entities: [PERSON], method: redact}}
"""


def options_of(command: str, capsys: pytest.CaptureFixture[str]) -> set[str]:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    return set(re.findall(r"--[a-z][a-z-]+", capsys.readouterr().out))


def hooks() -> dict[str, dict[str, Any]]:
    return {h["id"]: h for h in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}


def check_step() -> dict[str, Any]:
    steps = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    return next(s for s in steps if s.get("id") == "check")


def test_both_hooks_call_a_command_that_exists(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(hooks()) == {"dpredact-check", "dpredact-verify"}
    for hook in hooks().values():
        program, command, *flags = hook["entry"].split()
        assert program == "dpredact" and set(flags) <= options_of(command, capsys)
        assert "--write-baseline" not in flags and hook["language"] == "python"


def test_the_check_hook_looks_at_documents() -> None:
    pattern = hooks()["dpredact-check"]["files"]
    for name in ("a.txt", "x/b.MD", "c.docx", "d.html", "e.htm", "f.jsonl", "g.eml", "h.pdf", "i.tsv"):
        assert re.search(pattern, name), name
    for name in ("a.py", "b.png", "dpredact.yaml", "Makefile"):
        assert not re.search(pattern, name), name


def test_the_action_uses_options_that_exist_and_pastes_no_input_into_a_script(
    capsys: pytest.CaptureFixture[str],
) -> None:
    script = check_step()["run"]
    used = set(re.findall(r"--[a-z][a-z-]+", script))
    assert used and used <= options_of("check", capsys)
    for step in yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]:
        assert "${{" not in step.get("run", "")


@pytest.mark.parametrize("output", ["", "out file.txt"])
def test_the_actions_script_runs(tmp_path: Path, output: str) -> None:
    """With paths that a shell would take for something else."""
    (tmp_path / "runner/dpredact/bin").mkdir(parents=True)
    program = tmp_path / "runner/dpredact/bin/dpredact"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dpredact "$@"\n')
    program.chmod(0o755)
    (tmp_path / "policy.yaml").write_text(POLICY)
    for name in ("-a b.txt", "$(touch evil).txt", "*.md"):
        (tmp_path / name).write_text("Write to brenn@example.com now.\n")
    env = {
        **os.environ, "RUNNER_TEMP": str(tmp_path / "runner"), "GITHUB_OUTPUT": str(tmp_path / "outputs"),
        "PATHS": "-a b.txt\n$(touch evil).txt\n*.md\n", "POLICY": "policy.yaml", "BASELINE": "",
        "MAX_EPSILON": "10", "KEY": "", "FORMAT": "github", "OUTPUT": output, "MODELS": "false",
    }  # fmt: skip
    done = subprocess.run(["bash", "-eo", "pipefail", "-c", check_step()["run"]], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    written = (tmp_path / output).read_text() if output else done.stdout
    assert written.count("::error ") == 3
    assert (tmp_path / "outputs").read_text() == "exit-code=1\n"
    assert not (tmp_path / "evil").exists()


def test_images_run_without_root_and_the_gate_without_torch() -> None:
    stages = re.split(r"(?m)^FROM ", (ROOT / "Dockerfile").read_text())[1:]
    names = {s.splitlines()[0].split(" AS ")[1]: s for s in stages}
    assert set(names) == {"base", "check", "full"}
    for name in ("check", "full"):
        assert re.search(r"(?m)^USER 10001:10001$", names[name])
        assert names[name].index("USER") > names[name].index("RUN")
    assert "lm" in re.findall(r"\.\[([a-z,]+)\]", names["full"])[0].split(",")
    assert "lm" not in re.findall(r"\.\[([a-z,]+)\]", names["check"])[0].split(",")


def test_the_image_gets_what_the_build_needs() -> None:
    allowed = (ROOT / ".dockerignore").read_text().split()
    for line in re.findall(r"(?m)^COPY (.+) \./?\S*$", (ROOT / "Dockerfile").read_text()):
        for name in line.split():
            assert f"!{name}" in allowed, name
