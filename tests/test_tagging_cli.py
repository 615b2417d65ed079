"""`dpredact tags`: what it prints, what it does not, and its exit codes."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

TEXT = "Patient: Tovin Maraq\n<b>&amp; Seen by Dr Odalys Brennwald on 3 March 2031; call 202-555-0143. <b>&\n"
POLICY = """version: 1
groups:
  PERSON: {entities: [PERSON], method: redact}
  other: {entities: [DENY], method: redact}
tagger: {use: [patterns]}
"""


def run(*args: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dpredact", "tags", *args],
        cwd=cwd, input=stdin, capture_output=True, text=True, encoding="utf-8",
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "note.txt").write_text(TEXT, encoding="utf-8")
    return tmp_path


RULES = ("--use", "patterns")


def test_json_is_the_contract(folder: Path) -> None:
    done = run("note.txt", "--json", *RULES, cwd=folder)
    assert done.returncode == 0
    (line,) = done.stdout.splitlines()
    found = json.loads(line)
    assert found["schema"] == 1 and found["path"] == "note.txt"
    assert found["length"] == len(TEXT) and found["complete"] is True
    spans = [(TEXT[s["start"] : s["end"]], s["entity"]) for s in found["spans"]]
    assert spans == [
        ("Tovin Maraq", "PERSON"), ("Dr Odalys Brennwald", "PERSON"), ("3 March 2031", "DATE"), ("202-555-0143", "PHONE"),
    ]  # fmt: skip
    assert all(s["group"] is None and s["sources"] and 0 <= s["score"] <= 1 for s in found["spans"])


def test_words_are_shown_only_when_asked_for(folder: Path) -> None:
    """No marker word on stdout or stderr without --show-values."""
    for args in ((), ("--json",), ("--explain", "12"), ("--save",)):
        done = run("note.txt", *args, *RULES, cwd=folder)
        assert done.returncode == 0
        assert "Maraq" not in done.stdout + done.stderr
    for args in (("--show-values",), ("--json", "--show-values"), ("--explain", "12", "--show-values")):
        assert "Maraq" in run("note.txt", *args, *RULES, cwd=folder).stdout


def test_groups_come_from_the_policy(folder: Path) -> None:
    (folder / "dpredact.yaml").write_text(POLICY, encoding="utf-8")
    found = json.loads(run("note.txt", "--json", cwd=folder).stdout)
    assert {s["entity"]: s["group"] for s in found["spans"]} == {"PERSON": "PERSON", "DATE": "other", "PHONE": "other"}


def test_stdin_takes_its_type_from_the_name(folder: Path) -> None:
    done = run("-", "--stdin-filename", "x.csv", "--json", *RULES, cwd=folder, stdin="Id,Name\n7,Odalys\n")
    found = json.loads(done.stdout)
    assert found["path"] == "x.csv"
    assert [s["entity"] for s in found["spans"]] == ["PERSON"]


def test_explain_says_who_found_it_and_what_became_of_it(folder: Path) -> None:
    out = run("note.txt", "--explain", "12", *RULES, cwd=folder).stdout
    assert "patterns:name after the label 'patient'" in out and "used" in out
    assert out.rstrip().splitlines()[-1].startswith("result: 9-20  PERSON")
    out = run("note.txt", "--explain", "2", *RULES, cwd=folder).stdout
    assert "result: not private" in out
    assert run("note.txt", "--explain", "9999", *RULES, cwd=folder).returncode == 2


def test_the_page_is_private_whole_and_escaped(folder: Path) -> None:
    assert run("note.txt", "--html", "page.html", *RULES, cwd=folder).returncode == 0
    page = folder / "page.html"
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    marked: list[str] = []
    stray: list[str] = []

    class Reader(HTMLParser):
        inside = False

        def handle_starttag(self, tag: str, attrs: object) -> None:
            self.inside = tag == "mark"
            if tag in ("b", "script", "link", "img"):
                stray.append(tag)

        def handle_data(self, data: str) -> None:
            if self.inside:
                marked.append(data)
                self.inside = False

    Reader().feed(page.read_text(encoding="utf-8"))
    assert marked == ["Tovin Maraq", "Dr Odalys Brennwald", "3 March 2031", "202-555-0143"]
    assert stray == []  # the text's own <b> is text


def test_corrections_are_saved_used_and_refused_when_stale(folder: Path) -> None:
    assert run("note.txt", "--save", *RULES, cwd=folder).returncode == 0
    side = folder / "note.txt.tags.jsonl"
    side.write_text("\n".join(side.read_text().splitlines()[:2]), encoding="utf-8")
    found = json.loads(run("note.txt", "--json", *RULES, cwd=folder).stdout)
    assert found["corrected"] is True and len(found["spans"]) == 1
    fresh = json.loads(run("note.txt", "--json", "--ignore-corrections", *RULES, cwd=folder).stdout)
    assert fresh["corrected"] is False and len(fresh["spans"]) == 4
    assert run("note.txt", "--save", *RULES, cwd=folder).returncode == 2  # it may hold work
    (folder / "note.txt").write_text("other text", encoding="utf-8")
    done = run("note.txt", *RULES, cwd=folder)
    assert done.returncode == 3 and "stale" in done.stderr


def test_what_cannot_be_read_is_exit_3_and_the_rest_goes_on(folder: Path) -> None:
    (folder / "bad.txt").write_bytes(b"\x00\x01\x02\xff\xfe" * 50)
    done = run("bad.txt", "note.txt", "--json", *RULES, cwd=folder)
    assert done.returncode == 3
    first, second = map(json.loads, done.stdout.splitlines())
    assert first["complete"] is False and second["complete"] is True


@pytest.mark.parametrize("args", [("nowhere.txt",), ("note.txt", "--use", "oracle"), ("note.txt", "--policy", "no.yaml"), ("-", "note.txt")])
def test_usage_errors_are_exit_2(folder: Path, args: tuple[str, ...]) -> None:
    assert run(*args, cwd=folder).returncode == 2
