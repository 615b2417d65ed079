"""Tasks to engines: in this process, or in N processes that each hold one engine.

Only the parent writes files and journal. A worker gets bytes and gives back a Result; when
the parent dies, even by SIGKILL, the worker leaves at once. A worker that dies
(killed for memory, a crash in native code) costs its one document and is replaced.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from dpredact.errors import DpredactError, ModelError
from dpredact.jobs import engine as engines
from dpredact.jobs.engine import Factory, Input, Result


@dataclass(frozen=True)
class Task:
    """One document to rewrite; `label` is the caller's own, and stays in this process.

    begin: called once an engine is free, right before the first draw; False drops the task.
    """

    label: Any
    given: Input
    begin: Callable[[], bool]


Told = Callable[[Task, int], None]  # so many more tokens were drawn for this task


def run(
    factory: Factory, tasks: Iterator[Task], told: Told, jobs: int = 1, together: int = 1
) -> Iterator[tuple[Task, Result]]:
    """Results as they come. At most one task more than there are engines is taken from `tasks`.

    together: documents that one process draws side by side (with one process only).

    Raises DpredactError if an engine cannot be built. Close the iterator to stop early.
    """
    if jobs > 1:
        return _there(factory, tasks, told, jobs)
    return _here(factory, tasks, told, together)


def _here(
    factory: Factory, tasks: Iterator[Task], told: Told, together: int
) -> Iterator[tuple[Task, Result]]:
    first = next(tasks, None)
    if first is None:
        return  # a job with nothing to do loads nothing
    engine = factory()
    tasks = itertools.chain([first], tasks)
    if together > 1 and getattr(engine, "draws", False):
        yield from engine.many(tasks, told, together)
        return
    for task in tasks:
        if task.begin():
            yield task, engines.run(engine, task.given, lambda n, t=task: told(t, n))


def _there(
    factory: Factory, tasks: Iterator[Task], told: Told, jobs: int
) -> Iterator[tuple[Task, Result]]:
    crew = _Crew(factory, jobs)
    try:
        while crew.give(tasks):
            for worker, message in crew.listen():
                kind, value = message
                if kind == "tokens":
                    told(worker.task, value)
                elif kind == "result":
                    task, worker.task = worker.task, None
                    yield task, value
                elif kind == "broken":
                    raise value
    finally:
        crew.end()


class _Worker:
    def __init__(self, factory: Factory, threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, factory, threads), daemon=True)
        self.process.start()
        theirs.close()
        self.task: Task | None = None
        self.ready = False


class _Crew:
    def __init__(self, factory: Factory, jobs: int) -> None:
        self.factory, self.jobs = factory, jobs
        self.threads = max(1, (os.cpu_count() or 1) // jobs)
        self.workers: list[_Worker] = []
        self.waiting: Task | None = None

    def give(self, tasks: Iterator[Task]) -> bool:
        """A task for every free worker; False when nobody has anything left to do."""
        for worker in [w for w in self.workers if w.task is None and w.ready]:
            while (task := self._next(tasks)) is not None:
                self.waiting = None
                if task.begin():
                    self._hand(worker, task)
                    break
        while len(self.workers) < self.jobs and self._next(tasks) is not None:
            self.workers.append(_Worker(self.factory, self.threads))
        return self.waiting is not None or any(w.task is not None for w in self.workers)

    def _next(self, tasks: Iterator[Task]) -> Task | None:
        if self.waiting is None:
            self.waiting = next(tasks, None)
        return self.waiting

    @staticmethod
    def _hand(worker: _Worker, task: Task) -> None:
        worker.task = task
        try:
            worker.pipe.send(task.given)
        except OSError:
            pass  # it has just died; `listen` finds out and says which document it cost

    def listen(self) -> list[tuple[_Worker, tuple[str, Any]]]:
        by_pipe = {w.pipe: w for w in self.workers}
        heard = []
        for pipe in wait(list(by_pipe)):
            worker = by_pipe[pipe]  # type: ignore[index]
            try:
                message = worker.pipe.recv()
            except (EOFError, OSError):
                heard += self._lost(worker)
                continue
            worker.ready = True
            if message[0] != "ready":
                heard.append((worker, message))
        return heard

    def _lost(self, worker: _Worker) -> list[tuple[_Worker, tuple[str, Any]]]:
        self.workers.remove(worker)
        worker.process.join()
        how = worker.process.exitcode or 0
        end = f"signal {-how}" if how < 0 else f"exit code {how}"
        if not worker.ready:
            raise ModelError(
                f"a worker process ended before its models were loaded ({end})",
                next_step="use fewer --jobs: each process holds its own model",
            )
        if worker.task is None:
            return []
        result = Result(
            "failed",
            reason=f"the worker process ended in the middle ({end})",
            next_step="use fewer --jobs, or a smaller model, if memory ran out",
            code=5,
        )
        return [(worker, ("result", result))]

    def end(self) -> None:
        for worker in self.workers:
            if worker.task is not None:
                worker.process.terminate()
            worker.pipe.close()
        for worker in self.workers:
            worker.process.join(5)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()


def _leave_with_the_parent() -> None:
    """Ends this process when its parent is gone, in the middle of a document if need be: what
    it would draw could not be written any more."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(0)


def _work(pipe: Connection, factory: Factory, threads: int) -> None:
    """The life of a worker process. It leaves without a word when the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    threading.Thread(target=_leave_with_the_parent, daemon=True).start()
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    try:
        try:
            engine = factory()
        except DpredactError as error:
            pipe.send(("broken", error))
            return
        except Exception as error:
            pipe.send(("broken", ModelError(engines._fault(error))))
            return
        pipe.send(("ready", None))
        while True:
            given = pipe.recv()
            result = engines.run(engine, given, lambda n: pipe.send(("tokens", n)))
            pipe.send(("result", result))
    except (EOFError, OSError):
        os._exit(0)
