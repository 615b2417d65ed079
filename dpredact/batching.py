"""The loop: many texts, one session. Logits, advance every lane, append; leave; join.

Rows of all lanes decode together, because a step costs one reading of the weights however
many rows there are. A lane that has ended leaves; a waiting one takes its place as soon as
the token budget allows. Who sits beside whom is a function of public sizes and drawn
tokens, so no row moves because of another text's private words (THEORY §5, Rows).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from dpredact.decoding import Lane, advance_together
from dpredact.lm.interface import LanguageModel, Session
from dpredact.privacy.sampling import Draw

MEMORY = 1 << 30  # bytes of keys and values at once; more rows than that gain little on a CPU

PREFILL = 16_384  # most padded tokens read at once: their activations need far more memory


def room_for(model: LanguageModel) -> int:
    """Padded tokens that decode together: rows × (width + tokens to come), from MEMORY."""
    return max(1, MEMORY // model.token_bytes)

Job = TypeVar("Job")


class Desk(Generic[Job]):
    """Writes lanes of jobs to their end, as many side by side as `room` allows.

    most_jobs: most jobs that have begun and not ended.
    room: most padded tokens at once; a single lane larger than it is still taken, alone.
    progress: called with the number of tokens drawn in each round.
    """

    def __init__(
        self,
        model: LanguageModel,
        draw: Draw,
        *,
        room: int | None = None,
        most_jobs: int = 1 << 30,
        progress: Callable[[int], None] = lambda tokens: None,
    ) -> None:
        self._model, self._draw, self._progress = model, draw, progress
        self._room = room_for(model) if room is None else room
        self._most_jobs = most_jobs
        self._session: Session | None = None
        self._going: list[Lane] = []

    def serve(self, jobs: Iterable[tuple[Job, Sequence[Lane]]]) -> Iterator[Job]:
        """Yield each job when its last lane has ended. Jobs are taken only when there is room."""
        source = iter(jobs)
        waiting: deque[Lane] = deque()
        owner: dict[int, int] = {}  # lane -> ticket of its job
        open_jobs: dict[int, tuple[Job, int]] = {}
        exhausted, ticket = False, 0
        while True:
            joining: list[Lane] = []
            while True:  # fill up
                if not waiting and not exhausted and len(open_jobs) < self._most_jobs:
                    taken = next(source, None)
                    if taken is None:
                        exhausted = True
                        continue
                    job, lanes = taken
                    writable = [lane for lane in lanes if lane.open]
                    if not writable:
                        yield job
                        continue
                    ticket += 1
                    open_jobs[ticket] = (job, len(writable))
                    owner |= {id(lane): ticket for lane in writable}
                    waiting.extend(writable)
                if not waiting or not self._fits([*self._going, *joining, waiting[0]]):
                    break
                joining.append(waiting.popleft())
            if joining:
                self._join(joining)
            if not self._going:
                return
            for lane in self._round():
                number = owner.pop(id(lane))
                job, left = open_jobs.pop(number)
                if left == 1:
                    yield job
                else:
                    open_jobs[number] = (job, left - 1)

    def _fits(self, lanes: Sequence[Lane]) -> bool:
        rows = sum(len(lane.rows) for lane in lanes)
        longest = max(lane.width + lane.limit for lane in lanes)
        return len(lanes) == 1 or rows * longest <= self._room

    def _join(self, lanes: Sequence[Lane]) -> None:
        """Prefill new lanes, a bounded number of tokens at a time, and take their rows over."""
        if not self._going:
            self._session = None
        batch: list[Lane] = []
        for lane in lanes:
            if batch and _prefill([*batch, lane]) > PREFILL:
                self._open(batch)
                batch = []
            batch.append(lane)
        self._open(batch)
        self._going += lanes

    def _open(self, lanes: Sequence[Lane]) -> None:
        rows = [row for lane in lanes for row in lane.fitting_rows()]
        steps = max(lane.limit for lane in lanes)
        fresh = self._model.open(rows, max(lane.width for lane in lanes), steps)
        if self._session is None:
            self._session = fresh
        else:
            self._session.join(fresh)

    def _round(self) -> list[Lane]:
        """One token for every lane; returns the lanes that ended."""
        assert self._session is not None
        logits = self._session.logits()  # (rows, V)
        every = advance_together(self._going, logits, self._model.eos, self._draw)
        at, appended, staying, left, ended = 0, [], [], [], []
        for lane, drawn in zip(self._going, every, strict=True):
            count = len(lane.rows)
            if lane.open:
                appended += [drawn] * count
                staying += range(at, at + count)
                left.append(lane)
            else:
                ended.append(lane)
            at += count
        self._progress(len(self._going))
        if left and ended:
            self._session.keep(staying)
        if left:
            self._session.append(appended)
        self._going = left
        return ended


def _prefill(lanes: Sequence[Lane]) -> int:
    """Padded tokens to read before the first draw of these lanes."""
    return sum(len(lane.rows) for lane in lanes) * max(lane.width for lane in lanes)
