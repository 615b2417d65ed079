"""`dpredact rewrite` from the command line, with real pipelines: labels, and the toy model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dpredact import certificate
from dpredact.certificate import sign
from dpredact.cli.main import main
from dpredact.jobs import journal

REDACT = """\
version: 1
tagger: {use: [patterns]}
groups:
  other: {entities: [PERSON], method: redact}
"""
TOY = """\
version: 1
model: toy
tagger: {use: [patterns]}
max_new_tokens: 12
view_reserve: 20
groups:
  MAIL: {entities: [EMAIL], method: dp-fusion, epsilon: 20, order: auto}
  other: {entities: [PERSON], method: redact}
"""
TEXT = "Ask brenn@example.com or call +1 202-555-0143 today.\n"
CLEAN = "Ask [other] or call [other] today.\n"


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(journal.VARIABLE, str(tmp_path / ".state"))
    (tmp_path / "dpredact.yaml").write_text(REDACT)
    (tmp_path / "in/sub").mkdir(parents=True)
    (tmp_path / "in/a.txt").write_text(TEXT)
    (tmp_path / "in/sub/b.md").write_text(TEXT)
    return tmp_path


def rewrite(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(["rewrite", *args])
    out, err = capsys.readouterr()
    return int(caught.value.code or 0), out, err


def piped(*args: str, data: bytes = TEXT.encode(), **more: Any) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "dpredact", "rewrite", *args]
    return subprocess.run(command, input=data, capture_output=True, **more)


def lines(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def holds(document: Path) -> bool:
    claim = json.loads(Path(f"{document}.cert.json").read_text())
    return certificate.verify(document.read_bytes(), claim).ok


def test_a_folder_is_mirrored_with_certificates(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = rewrite(capsys, "in", "-o", "out")
    assert (code, out) == (0, "") and "2 written in out" in err
    for name in ("out/a.txt", "out/sub/b.md"):
        assert (room / name).read_text() == CLEAN and holds(room / name)
    assert (room / "in/a.txt").read_text() == TEXT


def test_json_has_the_agreed_fields(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (room / "in/c.txt").write_text("Nothing at all.\n")
    code, out, _ = rewrite(capsys, "in", "-o", "out", "--json")
    assert code == 3
    first, second, _ = lines(out)
    assert {"schema", "path", "output", "certificate", "status", "reason", "finished", "epsilon", "epsilon_all"} <= set(first)
    assert (first["status"], first["finished"], first["epsilon"], first["epsilon_all"]) == ("written", "stop", {"other": "0"}, "0")
    assert (second["path"], second["status"], second["output"]) == ("in/c.txt", "refused", None)
    assert "nothing private" in second["reason"] and not (room / "out/c.txt").exists()


def test_without_o_results_lie_in_a_folder_of_their_own(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rewrite(capsys, "in/a.txt")[0] == 0
    assert (room / "dpredact-output/a.txt").read_text() == CLEAN
    assert rewrite(capsys, ".")[0] == 0, "neither the policy nor what a job writes is an input"
    assert not (room / "dpredact-output/dpredact-output").exists()
    assert (room / "dpredact-output/in/sub/b.md").exists()


def test_in_place_replaces_once(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rewrite(capsys, "in", "--in-place")[0] == 0
    assert (room / "in/a.txt").read_text() == CLEAN and holds(room / "in/a.txt")
    code, out, _ = rewrite(capsys, "in", "--in-place", "--json")
    assert code == 0 and {x["status"] for x in lines(out)} == {"skipped"}
    assert (room / "in/a.txt").read_text() == CLEAN and holds(room / "in/a.txt")


def test_the_source_is_never_replaced_without_in_place(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = rewrite(capsys, "in", "-o", "in")
    assert code == 2 and "--in-place" in err and (room / "in/a.txt").read_text() == TEXT


def test_two_inputs_for_one_output_stop_before_anything(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (room / "other").mkdir()
    (room / "other/a.txt").write_text(TEXT)
    code, _, err = rewrite(capsys, "in/a.txt", "other/a.txt", "-o", "out")
    assert code == 2 and "both be written to" in err and not (room / "out/a.txt").exists()


def test_no_policy_names_the_command_that_writes_one(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (room / ".git").mkdir()
    (room / "dpredact.yaml").unlink()
    code, _, err = rewrite(capsys, "in", "-o", "out")
    assert code == 2 and "dpredact policy init" in err


def test_missing_files_are_told(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rewrite(capsys, "nowhere.txt", "-o", "out")[0] == 2
    code, _, err = rewrite(capsys, "nowhere.txt", "in/a.txt", "-o", "out")
    assert code == 3 and "nowhere.txt: no such file" in err and (room / "out/a.txt").exists()


@pytest.mark.parametrize(
    "args",
    [(), ("-", "in"), ("-", "--in-place"), ("in", "-o", "x", "--in-place"), ("in", "-0"), ("-", "--json"),
     ("in", "--certificate", "c"), ("in", "--resume", "--again"), ("in", "--shard", "3/2"), ("in", "--shard", "x"),
     ("in", "--in-place", "--name-map", "m"), ("in", "-o", "out", "--name-map", "out/m"),
     ("in", "-o", "out", "--report", "out/r"), ("in", "--in-place", "--report", "in/r"),
     ("in", "--exclude", "*"), ("in", "--sign", "dpredact.yaml"), ("--files-from", "missing"),
     ("in", "-o", "dpredact.yaml")],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_before_anything(
    room: Path, capsys: pytest.CaptureFixture[str], args: tuple[str, ...]
) -> None:
    before = sorted(room.rglob("*"))
    code, out, err = rewrite(capsys, *args)
    assert (code, out) == (2, "") and "next:" in err
    changed = [p.name for p in sorted(room.rglob("*")) if p not in before and ".state" not in p.parts]
    assert changed in ([], ["out"]), changed


# -- pipes ------------------------------------------------------------------------------


def test_a_pipe_carries_the_document_and_nothing_else(room: Path) -> None:
    done = piped("-", "--certificate", "c.json")
    assert (done.returncode, done.stdout) == (0, CLEAN.encode())
    claim = json.loads((room / "c.json").read_text())
    assert certificate.verify(done.stdout, claim).ok and claim["subject"][0]["name"] == "stdin.txt"
    assert b"not kept" in piped("-").stderr


def test_stdin_filename_gives_the_type(room: Path) -> None:
    table = b"Id,Mail\r\n1,brenn@example.com\r\n"
    done = piped("-", "--stdin-filename", "x/table.csv", data=table)
    assert (done.returncode, done.stdout) == (0, b"Id,Mail\r\n1,[other]\r\n")
    done = piped("-", "--stdin-filename", "table.csv", "-o", "out", "--json", data=table)
    assert done.returncode == 0 and json.loads(done.stdout)["output"] == "out/table.csv"
    assert holds(room / "out/table.csv")


def test_a_refused_pipe_carries_nothing(room: Path) -> None:
    done = piped("-", "--certificate", "c.json", data=b"Nothing at all.\n")
    assert (done.returncode, done.stdout) == (3, b"") and not (room / "c.json").exists()
    done = piped("-", data=b"brenn@example.com \xff\xfe\x00\xd8")
    assert (done.returncode, done.stdout) == (3, b"") and b"brenn" not in done.stderr


def test_lists_of_files(room: Path) -> None:
    done = piped("--files-from", "-", "-0", "-o", "out", data=b"in/sub/b.md\0in/a.txt\0")
    assert done.returncode == 0
    assert (room / "out/in/sub/b.md").exists() and (room / "out/in/a.txt").exists()


# -- the owner's files ------------------------------------------------------------------


def test_neutral_names_hide_the_names_everywhere(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (room / "in/Tilda Brackenbury.txt").write_text(TEXT)
    code, _, _ = rewrite(capsys, "in", "-o", "out", "--name-map", "map.json")
    assert code == 0
    names = json.loads((room / "map.json").read_text())["names"]
    assert (room / "map.json").stat().st_mode & 0o777 == 0o600
    assert set(names) == {"a.txt", "sub/b.md", "Tilda Brackenbury.txt"}
    released = [p for p in (room / "out").rglob("*") if p.is_file()]
    assert {p.name for p in released} >= set(names.values())
    assert not [p for p in released if b"Brackenbury" in os.fsencode(p) + p.read_bytes()]
    assert all(holds(room / "out" / n) for n in names.values())
    (room / "in/new.txt").write_text(TEXT)
    rewrite(capsys, "in", "-o", "out", "--name-map", "map.json", "--resume")
    assert json.loads((room / "map.json").read_text())["names"].items() > names.items()


def test_the_report_is_private(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rewrite(capsys, "in", "-o", "out", "--report", "report.jsonl")[0] == 0
    assert (room / "report.jsonl").stat().st_mode & 0o777 == 0o600
    note, first, _ = lines((room / "report.jsonl").read_text())
    assert note["private"] and first["private"] and "brenn@example.com" in json.dumps(first)


def test_signed_certificates(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["keygen", "mine"])
    assert caught.value.code == 0
    capsys.readouterr()
    assert rewrite(capsys, "in", "-o", "out", "--sign", "mine.key")[0] == 0
    envelope = json.loads((room / "out/a.txt.cert.json").read_text())
    claim = sign.checked(envelope, room / "mine.pub")
    assert certificate.verify((room / "out/a.txt").read_bytes(), claim).ok


def test_corrections_beside_a_file_decide_what_is_private(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another correction is another release; a stale one refuses the file."""
    with pytest.raises(SystemExit):
        main(["tags", "in/a.txt", "--save", "--json"])
    beside = room / "in/a.txt.tags.jsonl"
    head = beside.read_text().splitlines()[0]
    beside.write_text(head + '\n{"text": "today", "entity": "PERSON"}\n')
    capsys.readouterr()
    code, out, _ = rewrite(capsys, "in", "-o", "out", "--json")
    assert code == 0 and [x["path"] for x in lines(out)] == ["in/a.txt", "in/sub/b.md"]
    assert (room / "out/a.txt").read_text() == TEXT.replace("today", "[other]")
    beside.write_text(head + '\n{"text": "call", "entity": "PERSON"}\n')
    rewrite(capsys, "in", "-o", "out", "--resume")
    assert (room / "out/a.txt").read_text() == TEXT.replace("call", "[other]")
    (room / "in/a.txt").write_text(TEXT + "More.\n")
    code, out, _ = rewrite(capsys, "in", "-o", "out", "--json", "--resume")
    assert code == 3 and "stale" in lines(out)[0]["reason"]
    assert rewrite(capsys, "in", "-o", "out", "--resume", "--ignore-corrections")[0] == 0
    assert (room / "out/a.txt").read_text() == CLEAN + "More.\n"


def test_the_ledger_counts_over_runs_and_its_limit_holds(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (room / "dpredact.yaml").write_text(TOY)
    limited = ("--allow-cut", "--ledger", "book.jsonl", "--ledger-limit", "25", "--json")
    code, out, _ = rewrite(capsys, "in/a.txt", "-o", "one", *limited)
    assert code == 0 and lines(out)[0]["status"] == "written"
    assert (room / "book.jsonl").stat().st_mode & 0o777 == 0o600
    code, out, _ = rewrite(capsys, "in/a.txt", "-o", "two", *limited)
    assert code == 4 and lines(out)[0]["status"] == "refused" and "limit" in lines(out)[0]["reason"]
    assert not (room / "two/a.txt").exists()
    assert len((room / "book.jsonl").read_text().splitlines()) == 1
    code, out, _ = rewrite(capsys, "in/a.txt", "-o", "two", "--allow-cut", "--json")
    assert code == 0 and lines(out)[0]["reason"] is None, "what was refused before a draw is no draw"
    assert rewrite(capsys, "in/a.txt", "-o", "out", "--ledger", "out/book.jsonl")[0] == 2
    assert rewrite(capsys, "in/a.txt", "-o", "out", "--ledger-limit", "3")[0] == 2


# -- progress ---------------------------------------------------------------------------


def test_progress_goes_to_stderr_and_json_is_json(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = rewrite(capsys, "in", "-o", "out", "--progress", "json")
    events = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
    assert code == 0 and out == ""
    assert [e["event"] for e in events] == ["began", "started", "ended", "started", "ended"]
    assert events[-1]["done"] == events[-1]["total"] == 2
    _, out, err = rewrite(capsys, "in", "-o", "out2", "--progress", "plain")
    assert out == "" and "[2/2] in/sub/b.md: written" in err
    _, out, err = rewrite(capsys, "in", "-o", "out3")
    assert out == "" and err.splitlines() == ["2 written in out3"], "not a terminal: no bar"


# -- many files -------------------------------------------------------------------------


def test_a_thousand_files_in_one_call(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for i in range(1000):
        (room / f"in/n{i:04}.txt").write_text(f"No. {i}: {TEXT}")
    names = [f"in/n{i:04}.txt" for i in range(1000)]
    code, out, _ = rewrite(capsys, *names, "-o", "out", "--json")
    assert code == 0 and len(lines(out)) == 1000
    assert (room / "out/n0999.txt").read_text() == f"No. 999: {CLEAN}"


def test_shards_share_an_output_folder(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for i in range(20):
        (room / f"in/n{i}.txt").write_text(TEXT)
    done: list[str] = []
    for i in (1, 2, 3):
        code, out, _ = rewrite(capsys, "in", "-o", "out", "--shard", f"{i}/3", "--json")
        assert code == 0
        done += [x["path"] for x in lines(out)]
        assert (room / f"out/job.{i}-of-3.json").exists()
    assert len(done) == len(set(done)) == 22
    code, out, _ = rewrite(capsys, "in", "-o", "out", "--resume", "--json")
    assert {x["status"] for x in lines(out)} == {"skipped"}


def test_only_failed_takes_what_is_left(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (room / "in/c.txt").write_text("Nothing at all.\n")
    assert rewrite(capsys, "in", "-o", "out")[0] == 3
    (room / "in/c.txt").write_text(TEXT)
    code, out, _ = rewrite(capsys, "in", "-o", "out", "--only-failed", "out/job.json", "--json")
    assert code == 0 and [x["path"] for x in lines(out)] == ["in/c.txt"]
    counts = json.loads((room / "out/job.json").read_text())["counts"]
    assert counts == {"written": 3}, "what was not worked on keeps its record"


# -- killed -----------------------------------------------------------------------------


def complete(room: Path) -> dict[str, bool]:
    """Every document in the output, and whether it is whole with its certificate."""
    documents = [p for p in (room / "out").glob("*.txt")]
    return {p.name: holds(p) for p in documents}


# Loads everything once and forks for every run, so that twenty runs take seconds.
NURSERY = """\
import os, sys
import torch
from dpredact import documents, lm, pipeline, tagging
from dpredact.cli.main import main
for line in sys.stdin:
    out, err = line.split()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT), 1)
        os.dup2(os.open(err, os.O_WRONLY | os.O_CREAT), 2)
        main(sys.argv[1:])
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_killed_twenty_times_over_forty_files(room: Path) -> None:
    """SIGKILL at any moment: outputs are complete or absent, nothing finished is drawn again,
    and an interrupted draw is counted and said."""
    (room / "dpredact.yaml").write_text(TOY)
    for path in (room / "in").rglob("*.*"):
        path.unlink()
    for i in range(40):
        (room / f"in/n{i:02}.txt").write_text(f"No. {i}. {TEXT}")
    command = ["rewrite", "in", "-o", "out", "--resume", "--allow-cut", "--json", "--progress", "json"]
    nursery = subprocess.Popen(
        [sys.executable, "-c", NURSERY, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert nursery.stdin is not None and nursery.stdout is not None
    said: list[dict[str, Any]] = []
    bytes_of: dict[str, bytes] = {}
    for attempt in range(21):
        out, err = room / f"run{attempt}.out", room / f"run{attempt}.err"
        nursery.stdin.write(f"{out} {err}\n")
        nursery.stdin.flush()
        child = int(nursery.stdout.readline())
        if attempt < 20:
            patience = time.monotonic() + 60
            while not (err.exists() and b'"started"' in err.read_bytes()):
                assert time.monotonic() < patience, "no document was begun: are all forty done already?"
                time.sleep(0.002)
            time.sleep(0.004 * (attempt % 10))  # somewhere else in a document each time
            os.kill(child, signal.SIGKILL)
        code = int(nursery.stdout.readline())
        said += [json.loads(x) for x in out.read_text().splitlines() if x.endswith("}")]
        state = complete(room)
        assert all(state.values()), "a document without its certificate"
        for name in state:
            data = (room / "out" / name).read_bytes()
            assert bytes_of.setdefault(name, data) == data, "a finished document was drawn again"
        assert code == (-signal.SIGKILL if attempt < 20 else 0), err.read_text()[-2000:]
    nursery.stdin.close()
    assert nursery.wait(30) == 0
    assert len(bytes_of) == 40
    assert sorted(p.name for p in (room / "out").iterdir()) == sorted(
        [*bytes_of, *(f"{n}.cert.json" for n in bytes_of), ".dpredact-job", "job.json"]
    ), "nothing half written is left"
    _nothing_spent_silently(room, said)


def _nothing_spent_silently(room: Path, said: list[dict[str, Any]]) -> None:
    """The journal counts every draw that was begun; each further one was said."""
    (book,) = (room / ".state/jobs").glob("*.jsonl")
    begun: dict[str, int] = {}
    for line in book.read_text().splitlines():
        record = json.loads(line)
        begun[record["place"]] = begun.get(record["place"], 0) + (record["stage"] == "started")
    assert len(begun) == 40
    # A kill may fall between the write and the line on stdout; all others must be there.
    written = {x["output"].split("/")[-1]: x["reason"] or "" for x in said if x["status"] == "written"}
    again = {name for name, count in begun.items() if count > 1}
    assert again, "no kill fell into a draw: the test has lost its point"
    assert all("counts as spent" in written[n] for n in again if n in written)
    assert not any("counts as spent" in written[n] for n in written if n not in again)
    assert len(again & set(written)) >= len(again) - 20 and again & set(written)


# -- kinds of files ---------------------------------------------------------------------


def pdf(text: str) -> bytes:
    """The smallest PDF that shows one line."""
    stream = f"BT /F1 12 Tf 50 700 Td ({text}) Tj ET".encode()
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    out, at = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, 1):
        at.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, part)
    table = b"xref\n0 6\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % a for a in at)
    return out + table + b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % len(out)


def test_a_pdf_comes_out_as_text_and_not_in_place(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (room / "in/c.pdf").write_bytes(pdf("Ask brenn@example.com today."))
    code, out, _ = rewrite(capsys, "in", "-o", "out", "--json")
    assert code == 0 and {x["output"] for x in lines(out)} == {"out/a.txt", "out/c.pdf.txt", "out/sub/b.md"}
    assert "Ask [other] today." in (room / "out/c.pdf.txt").read_text() and holds(room / "out/c.pdf.txt")
    assert json.loads((room / "out/c.pdf.txt.cert.json").read_text())["subject"][0]["name"] == "c.pdf.txt"
    code, out, _ = rewrite(capsys, "in", "--in-place", "--json")
    assert code == 3 and [x["status"] for x in lines(out)] == ["written", "refused", "written"]


def test_content_of_another_kind_than_the_name_says_is_refused(
    room: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (room / "in/c.txt").write_bytes(pdf("Ask brenn@example.com today."))
    code, out, _ = rewrite(capsys, "in/c.txt", "-o", "out", "--json")
    assert code == 3 and lines(out)[0]["status"] == "refused" and not (room / "out/c.txt").exists()
