"""The journal: what it remembers over kills, and what it never holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpredact.errors import UsageError
from dpredact.jobs import journal, outputs
from dpredact.jobs.journal import Identity, Journal, JournalError
from dpredact.policy import loads

POLICY = "version: 1\ngroups:\n  other: {entities: [PERSON], method: redact}\n"
JOB = "0" * 32


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(journal.VARIABLE, str(tmp_path / "state"))
    return journal.state_folder()


def pair(folder: Path, data: bytes = b"text") -> outputs.Prepared:
    goal = outputs.Target(folder / "a.txt", folder / "a.txt.cert.json")
    return outputs.prepare(goal, data, b"{}", owner=JOB)


def test_key_and_folder_are_for_the_owner_alone(state: Path) -> None:
    key = journal.owner_key(state)
    assert len(key) == 32 and journal.owner_key(state) == key
    assert state.stat().st_mode & 0o777 == 0o700
    assert (state / "owner.key").stat().st_mode & 0o777 == 0o600


def test_a_damaged_key_is_not_replaced(state: Path) -> None:
    (state / "owner.key").write_bytes(b"short")
    with pytest.raises(JournalError, match="damaged"):
        journal.owner_key(state)


def test_identity_changes_with_input_policy_lists_model_and_key(tmp_path: Path) -> None:
    lists = tmp_path / "names.yaml"
    lists.write_text("deny: [x]\n")
    plain = loads(POLICY)
    other = loads(POLICY.replace("redact", "keep"))
    listed = plain.model_copy(
        update={"tagger": plain.tagger.model_copy(update={"lists": str(lists)})}
    )
    seen = {
        Identity(b"k" * 32, plain).of(b"input"),
        Identity(b"k" * 32, plain).of(b"inpus"),
        Identity(b"k" * 32, other).of(b"input"),
        Identity(b"k" * 32, plain, "digest").of(b"input"),
        Identity(b"l" * 32, plain).of(b"input"),
        Identity(b"k" * 32, listed).of(b"input"),
    }
    lists.write_text("deny: [y]\n")
    seen.add(Identity(b"k" * 32, listed).of(b"input"))
    assert len(seen) == 7
    assert Identity(b"k" * 32, plain).of(b"input") in seen
    assert "kkkk" not in repr(Identity(b"k" * 32, plain))


def test_stages_are_remembered(state: Path, tmp_path: Path) -> None:
    with Journal(state, JOB) as book:
        book.started("k", "a.txt")
        ready = pair(tmp_path)
        book.ready("k", "a.txt", ready, {"finished": "stop"})
        outputs.commit(ready)
        book.done("k", "a.txt")
        book.started("k2", "b.txt")
        book.started("k3", "c.txt")
        book.ended("k3", "c.txt", "refused")
        book.started("k4", "d.txt")
        book.ended("k4", "d.txt", "refused", spent=False)
    with Journal(state, JOB) as book:
        assert book.entry("k", "a.txt").stage == "done"
        assert book.entry("k", "a.txt").summary == {"finished": "stop"}
        assert book.entry("k", "a.txt").released(ready.target)
        assert (book.entry("k2", "b.txt").stage, book.entry("k2", "b.txt").attempts) == ("started", 1)
        assert (book.entry("k3", "c.txt").stage, book.entry("k3", "c.txt").attempts) == ("ended", 1)
        assert book.entry("k4", "d.txt").attempts == 0, "refused before anything was drawn"
        assert book.wrote("a.txt") and not book.wrote("b.txt")
        assert book.elsewhere("k", "z.txt") and not book.elsewhere("k", "a.txt")


def test_a_torn_last_line_is_cut(state: Path) -> None:
    with Journal(state, JOB) as book:
        book.started("k", "a.txt")
        path = book.path
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole + whole[:length])
        with Journal(state, JOB) as book:
            assert book.entry("k", "a.txt").attempts == 1
            book.started("k", "b.txt")
        assert path.read_bytes().count(b"\n") == 2
        with Journal(state, JOB) as book:
            assert book.entry("k", "b.txt").attempts == 1


def test_a_damaged_line_in_the_middle_stops(state: Path) -> None:
    with Journal(state, JOB) as book:
        book.started("k", "a.txt")
        path = book.path
    path.write_bytes(b"{oops}\n" + path.read_bytes())
    with pytest.raises(JournalError) as caught, Journal(state, JOB):
        pass
    assert caught.value.place.endswith(":1")


def test_two_runs_of_one_job_exclude_each_other_and_shards_do_not(state: Path) -> None:
    with Journal(state, JOB), pytest.raises(UsageError, match="another dpredact"), Journal(state, JOB):
        pass
    with Journal(state, JOB, "1-of-2") as one, Journal(state, JOB, "2-of-2"):
        one.started("k", "a.txt")
    with Journal(state, JOB) as whole:
        assert whole.entry("k", "a.txt").attempts == 1, "a run without shards sees what shards did"


@pytest.mark.parametrize("renamed", [0, 1, 2])
def test_an_open_pair_is_put_in_place_by_the_next_run(state: Path, tmp_path: Path, renamed: int) -> None:
    """Killed after no, one or both renames: never drawn again, complete afterwards. The output
    folder may even have been moved in between."""
    folder = tmp_path / "out"
    folder.mkdir()
    with Journal(state, JOB, root=folder) as book:
        book.started("k", "a.txt")
        ready = pair(folder)
        book.ready("k", "a.txt", ready, {})
        for part, final in list(
            ((ready.certificate_part, ready.target.certificate), (ready.document_part, ready.target.document))
        )[:renamed]:
            part.rename(final)
    moved = folder.rename(tmp_path / "moved")
    with Journal(state, JOB, root=moved) as book:
        assert book.finish_open_pairs() == 1
        assert book.entry("k", "a.txt").stage == "done"
    assert sorted(p.name for p in moved.iterdir()) == ["a.txt", "a.txt.cert.json"]


def test_an_open_pair_that_is_gone_counts_as_spent(state: Path, tmp_path: Path) -> None:
    with Journal(state, JOB, root=tmp_path) as book:
        book.started("k", "a.txt")
        ready = pair(tmp_path)
        book.ready("k", "a.txt", ready, {})
    outputs.discard(ready)
    with Journal(state, JOB, root=tmp_path) as book:
        assert book.finish_open_pairs() == 0
        assert (book.entry("k", "a.txt").stage, book.entry("k", "a.txt").attempts) == ("ended", 1)


def test_the_job_number_lives_in_the_folder(tmp_path: Path) -> None:
    first = journal.job_id(tmp_path / "out")
    assert journal.job_id(tmp_path / "out") == first != journal.job_id(tmp_path / "out2")
    (tmp_path / "out" / journal.JOB_MARK).write_text("../../evil")
    with pytest.raises(UsageError, match="number of a job"):
        journal.job_id(tmp_path / "out")


def test_a_full_disk_under_the_journal_is_an_error_and_leaves_whole_lines(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    real = os.write
    with Journal(state, JOB) as book:
        book.started("k", "a.txt")
        monkeypatch.setattr(os, "write", lambda d, b: real(d, b[:7]))
        with pytest.raises(JournalError, match="no space"):
            book.started("k", "b.txt")
        monkeypatch.undo()
        book.started("k", "c.txt")
    with Journal(state, JOB) as book:
        assert [book.entry("k", f"{n}.txt").attempts for n in "abc"] == [1, 0, 1]
