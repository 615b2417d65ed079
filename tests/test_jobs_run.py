"""Whole jobs, with an engine of the pipeline's shape: in one process and in several."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.jobs_fakes import MARKER, FakeFactory

from dpredact.errors import BudgetExceeded, ModelError
from dpredact.jobs import jobfile, journal, outputs, run, walking
from dpredact.jobs.journal import Identity, Journal
from dpredact.jobs.report import Report
from dpredact.policy import loads

POLICY = loads("version: 1\ngroups:\n  other: {entities: [PERSON], method: redact}\n")


class Heard:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.events: list[tuple[str, object]] = []
        self.records: list[jobfile.Record] = []

    def began(self, total: int) -> None:
        self.events.append(("began", total))

    def started(self, path: str) -> None:
        self.events.append(("started", path))

    def tokens(self, path: str, count: int) -> None:
        self.events.append(("tokens", path))

    def ended(self, record: jobfile.Record) -> None:
        self.records.append(record)

    def remark(self, text: str) -> None:
        self.events.append(("remark", text))


class Room:
    """A folder of inputs, its output folder and the owner's state."""

    def __init__(self, base: Path) -> None:
        self.inputs, self.output, self.log = base / "in", base / "out", base / "log"
        self.inputs.mkdir()
        self.log.mkdir()
        self.heard = Heard()

    def write(self, **texts: str) -> None:
        for name, text in texts.items():
            (self.inputs / f"{name}.txt").write_text(text)

    def job(self, report: Report | None = None, part: str = "", **options: object) -> run.Job:
        sources = walking.walk([str(self.inputs)]).sources
        state = journal.state_folder()
        job_id = journal.job_id(self.output)
        return run.Job(
            outputs.in_folder(sources, self.output, {}),
            Identity(journal.owner_key(state), POLICY),
            Journal(state, job_id, part, self.output),
            run.Options(**{"spends": True, **options}),  # type: ignore[arg-type]
            self.output,
            jobfile.JobFile(self.output, job_id),
            report=report,
        )

    def run(self, seconds: float = 0.0, **options: object) -> dict[str, jobfile.Record]:
        self.heard = Heard()
        factory = FakeFactory(str(self.log), seconds=seconds)
        records = run.run(self.job(**options), factory, self.heard)  # type: ignore[arg-type]
        return {Path(r.path).stem: r for r in records}

    def draws(self, name: str) -> int:
        return len(list(self.log.glob(f"{name}.txt.*")))

    def job_json(self) -> dict[str, object]:
        return json.loads((self.output / "job.json").read_text())


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Room]:
    monkeypatch.setenv(journal.VARIABLE, str(tmp_path / "state"))
    yield Room(tmp_path)


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_bad_file_does_not_stop_the_rest(room: Room, jobs: int) -> None:
    room.write(a="fine", b="unreadable x", c="fine too", d="bug " + MARKER, e="long one", f="ok")
    done = room.run(jobs=jobs)
    assert {n: (r.status, r.code) for n, r in done.items()} == {
        "a": ("written", 0), "b": ("refused", 3), "c": ("written", 0),
        "d": ("failed", 5), "e": ("written", 3), "f": ("written", 0),
    }  # fmt: skip
    assert run.exit_code(list(done.values())) == 5
    assert (room.output / "a.txt").read_bytes() == b"FINE"
    assert json.loads((room.output / "a.txt.cert.json").read_text()) == {"subject": "a.txt"}
    assert not (room.output / "b.txt").exists() and not (room.output / "d.txt").exists()
    assert done["b"].reason == "offset 3: cannot be read as text"
    assert done["d"].reason.startswith("internal error: ValueError at ")
    assert done["e"].finished == "length" and "--allow-cut" in done["e"].next_step
    assert room.job_json()["counts"] == {"failed": 1, "refused": 1, "written": 4}


def test_private_words_are_in_no_record_and_no_file_but_the_report(room: Room, tmp_path: Path) -> None:
    room.write(a=f"I met {MARKER}.", d=f"bug {MARKER}")
    report = Report(tmp_path / "report.jsonl", [room.output])
    done = room.run(report=report)
    report.close()
    said = repr(done) + repr(room.heard.events) + repr(room.heard.records)
    kept = [p for p in tmp_path.rglob("*") if p.is_file() and p.parent != room.inputs]
    assert MARKER not in said
    assert [p.name for p in kept if MARKER.upper().encode() in p.read_bytes().upper()] == ["report.jsonl"]
    assert (tmp_path / "report.jsonl").stat().st_mode & 0o777 == 0o600
    lines = [json.loads(line) for line in (tmp_path / "report.jsonl").read_text().splitlines()]
    assert all(line["private"] for line in lines) and "PRIVATE" in lines[0]["note"]


def test_a_report_among_the_released_files_is_refused(room: Room) -> None:
    room.output.mkdir()
    (room.output.parent / "way").symlink_to(room.output)
    for path in (room.output / "r.jsonl", room.output.parent / "way/r.jsonl"):
        with pytest.raises(Exception, match="among the released files"):
            Report(path, [room.output])
        assert not path.exists()


def test_resume_skips_what_is_finished_and_does_the_rest(room: Room) -> None:
    room.write(a="fine", b="unreadable x")
    room.run()
    room.write(b="readable now", c="new")
    done = room.run(resume=True)
    assert {n: r.status for n, r in done.items()} == {"a": "skipped", "b": "written", "c": "written"}
    assert done["a"].output and done["a"].epsilon == {"PERSON": "8.1"} and done["a"].code == 0
    assert (room.draws("a"), room.draws("c")) == (1, 1)
    assert [d["status"] for d in room.job_json()["documents"]] == ["skipped", "written", "written"]


def test_a_changed_input_is_another_document(room: Room) -> None:
    room.write(a="fine")
    room.run()
    room.write(a="changed")
    assert room.run(resume=True)["a"].status == "written"
    assert (room.output / "a.txt").read_bytes() == b"CHANGED"


def test_finished_documents_are_not_drawn_again_without_again(room: Room) -> None:
    room.write(a="fine")
    room.run()
    done = room.run()
    assert (done["a"].status, done["a"].code) == ("refused", BudgetExceeded.exit_code)
    assert "--again" in done["a"].next_step and room.draws("a") == 1
    done = room.run(again=True)
    assert done["a"].status == "written" and room.draws("a") == 2
    assert "draw number 2" in done["a"].reason


def test_a_lost_result_is_not_drawn_again_silently(room: Room) -> None:
    room.write(a="fine")
    room.run()
    (room.output / "a.txt").unlink()
    done = room.run(resume=True)
    assert done["a"].code == 4 and "gone or changed" in done["a"].reason and room.draws("a") == 1


def test_what_costs_nothing_may_be_done_again(room: Room) -> None:
    room.write(a="fine")
    for _ in range(2):
        assert room.run(spends=False)["a"].status == "written"
    assert room.run(spends=False, resume=True)["a"].status == "skipped"


def test_files_of_others_are_not_replaced(room: Room) -> None:
    room.write(a="fine")
    room.output.mkdir()
    (room.output / "a.txt").write_text("somebody's work")
    done = room.run()
    assert done["a"].code == 3 and "did not write" in done["a"].reason and room.draws("a") == 0
    assert (room.output / "a.txt").read_text() == "somebody's work"
    assert room.run(again=True)["a"].status == "written"


def test_the_same_text_twice_is_said(room: Room) -> None:
    room.write(a="fine", b="fine")
    done = room.run()
    assert "losses add up" in done["b"].reason and done["b"].status == "written"


@pytest.mark.parametrize("jobs", [1, 2])
def test_fail_fast_stops_and_says_what_was_left(room: Room, jobs: int) -> None:
    room.write(a="bug", **{f"b{i}": "fine" for i in range(9)})
    done = room.run(fail_fast=True, jobs=jobs, seconds=0.3)
    assert done["a"].status == "failed"
    left = [r for r in done.values() if r.status == "skipped"]
    assert len(left) >= 7 and all("--fail-fast" in r.reason and r.code == 3 for r in left)


def test_a_full_disk_stops_the_job_before_more_is_spent(room: Room) -> None:
    room.write(**{f"a{i}": "fine" for i in range(5)})
    real = outputs._write

    def full(path: Path, data: bytes, mode: int) -> None:
        if b"FINE" in data:
            raise OSError(28, "No space left on device")
        real(path, data, mode)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outputs, "_write", full)
        done = room.run()
    assert done["a0"].status == "failed" and "disk is full" in done["a0"].reason
    assert sum(room.draws(f"a{i}") for i in range(5)) == 1
    assert [p.name for p in room.output.iterdir() if "a0" in p.name] == []
    done = room.run(resume=True)
    assert {r.status for r in done.values()} == {"written"}
    assert "draw number 2" in done["a0"].reason, "the draw that was thrown away is not forgotten"


def test_a_worker_that_dies_costs_its_document_only(room: Room) -> None:
    room.write(a="fine", b="die now", c="fine", d="die too", e="fine", f="fine")
    done = room.run(jobs=2)
    assert {n for n, r in done.items() if r.status == "written"} == {"a", "c", "e", "f"}
    assert done["b"].code == 5 and "signal 9" in done["b"].reason


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_missing_model_stops_the_job_and_counts_nothing_as_spent(room: Room, jobs: int) -> None:
    room.write(a="fine", b="fine as well")
    with pytest.raises(ModelError, match="weights"):
        run.run(room.job(jobs=jobs), FakeFactory(broken=True), room.heard)  # type: ignore[arg-type]
    assert room.job_json()["state"] == "interrupted"
    done = room.run()
    assert {r.reason for r in done.values()} == {""}


def test_an_interrupt_keeps_what_is_finished(room: Room) -> None:
    room.write(**{f"a{i}": "fine" for i in range(4)})

    class Interrupting(Heard):
        def ended(self, record: jobfile.Record) -> None:
            super().ended(record)
            if len(self.records) == 2:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.run(room.job(), FakeFactory(str(room.log)), Interrupting())
    assert room.job_json()["state"] == "interrupted"
    done = room.run(resume=True)
    assert sorted(r.status for r in done.values()) == ["skipped", "skipped", "written", "written"]
    assert all(room.draws(f"a{i}") == 1 for i in range(4))


def test_an_unreadable_file_is_refused(room: Room) -> None:
    """It is replaced by a link between the walk and the read."""
    room.write(a="fine", b="fine, too")
    job = room.job()
    (room.inputs / "a.txt").unlink()
    (room.inputs / "a.txt").symlink_to("b.txt")
    records = run.run(job, FakeFactory(), room.heard)
    assert [(r.status, r.code) for r in records] == [("refused", 3), ("written", 0)]


def test_only_failed_reads_a_job_file(room: Room) -> None:
    room.write(a="fine", b="bug", c="unreadable", d="die")
    room.run(jobs=2)
    assert jobfile.failed_outputs(room.output / "job.json") == {"b.txt", "c.txt", "d.txt"}
    with pytest.raises(Exception, match="no such job.json"):
        jobfile.failed_outputs(room.output / "nothing.json")


def test_a_batch_keeps_no_document_in_memory(room: Room) -> None:
    """The records of a thousand documents hold none of their bytes."""
    import gc

    room.write(**{f"a{i:03}": "fine " + "x" * 20_000 for i in range(100)})
    records = room.run()
    gc.collect()
    held = sum(len(o) for o in gc.get_objects() if type(o) in (bytes, str) and len(o) > 10_000)
    assert len(records) == 100 and held < 1_000_000


@pytest.mark.parametrize(
    ("codes", "problems", "code"),
    [([0, 0], 0, 0), ([0, 3], 0, 3), ([3, 4], 0, 4), ([4, 5, 3], 0, 5), ([0], 1, 3), ([1, 3], 0, 3), ([], 0, 0)],
)
def test_the_most_serious_code_wins(codes: list[int], problems: int, code: int) -> None:
    records = [jobfile.Record("x", code=c) for c in codes]
    assert run.exit_code(records, problems) == code


def test_workers_leave_when_the_parent_is_killed(room: Room, tmp_path: Path) -> None:
    import signal
    import subprocess
    import sys
    import time

    room.write(**{f"a{i}": "fine" for i in range(4)})
    script = (
        "import sys, os\n"
        "sys.path.insert(0, os.environ['FAKES'])\n"
        "from pathlib import Path\n"
        "from tests.jobs_fakes import FakeFactory\n"
        "from tests.test_jobs_run import Heard, Room\n"
        "if __name__ == '__main__':\n"
        "    room = Room.__new__(Room)\n"
        "    base = Path(sys.argv[1])\n"
        "    room.inputs, room.output, room.log, room.heard = base / 'in', base / 'out', base / 'log', Heard()\n"
        "    room.run(seconds=60, jobs=2)\n"
    )
    (tmp_path / "main.py").write_text(script)
    env = {**os.environ, "FAKES": str(Path(__file__).parent.parent)}
    parent = subprocess.Popen([sys.executable, str(tmp_path / "main.py"), str(tmp_path)], env=env)
    deadline = time.monotonic() + 60
    while len(pids := {p.name.split(".")[2] for p in room.log.iterdir()}) < 2:
        assert time.monotonic() < deadline and parent.poll() is None
        time.sleep(0.1)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 15
    while any(os.path.exists(f"/proc/{pid}") for pid in pids):
        assert time.monotonic() < deadline, "a worker went on without its parent"
        time.sleep(0.2)


class Unbegun:
    """Draws several side by side, and refuses one before it begins (it could not be read)."""

    spent = False
    draws = True

    def __call__(self, given, tokens):
        raise AssertionError("not called where documents are drawn side by side")

    def many(self, tasks, told, together):
        from dpredact.jobs.engine import Result

        for task in tasks:
            yield task, Result("refused", reason="cannot be read", code=3, spent=False)


def test_a_refusal_before_the_beginning_takes_nothing_back(room: Room) -> None:
    """A draw that was interrupted stays counted, whatever becomes of the next try."""
    room.write(a="fine")
    job = room.job()
    key = job.identity.of(b"fine")
    with job.journal:
        job.journal.started(key, "a.txt")
    assert [r.status for r in run.run(room.job(), Unbegun, room.heard)] == ["refused"]
    assert "draw number 2" in room.run(resume=True)["a"].reason
