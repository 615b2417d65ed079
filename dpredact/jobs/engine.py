"""One document after another through the pipeline, in one process: tagger and model load once.

An engine never raises because of a document: what happened is its Result. Exceptions that
we did not foresee are told by type and place only, since their words could quote the text.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dpredact.errors import DocumentError, DpredactError
from dpredact.jobs.outputs import written_name
from dpredact.policy import Policy

if TYPE_CHECKING:
    from dpredact.documents import Document
    from dpredact.jobs.ledger import Ledger
    from dpredact.pipeline import Release
    from dpredact.promise import Promise
    from dpredact.tagging import Tagging

_PACKAGE = Path(__file__).resolve().parent.parent

TAGGER_MODELS = {"spacy": "en-core-web-sm", "onnx": "rampart"}

Tokens = Callable[[int], None]  # called with the number of tokens drawn since the last call


@dataclass(frozen=True)
class Result:
    """What became of one document. `data` is the released file, `report` the owner's."""

    status: str  # written, copied, refused, failed
    data: bytes = field(default=b"", repr=False)
    certificate: dict[str, Any] | None = None
    finished: str = ""  # stop, length
    epsilon: dict[str, str] = field(default_factory=dict)
    epsilon_all: str = ""
    remarks: tuple[str, ...] = ()  # what changed besides the words; public
    reason: str = ""
    next_step: str = ""
    code: int = 0
    spent: bool = True  # did it come to a first draw? If not, no budget was touched
    report: dict[str, Any] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Input:
    """One document. `name` tells the format; `corrections`: the sidecar of a person, if any."""

    data: bytes = field(repr=False)
    name: str
    corrections: bytes | None = field(default=None, repr=False)


class Engine(Protocol):
    """`spent`: did the last document come to its first draw?"""

    spent: bool

    def __call__(self, given: Input, tokens: Tokens) -> Result: ...


Factory = Callable[[], Engine]  # picklable; called once per process


@dataclass(frozen=True)
class LedgerFile:
    """The owner's ledger over all runs, and the ε that it may reach (None: it only counts)."""

    path: Path
    key: bytes = field(repr=False)
    limit: float | None = None


@dataclass(frozen=True)
class PipelineFactory:
    """Builds the real engine. `report`: collect the owner's private report of each document."""

    policy: Policy
    unsafe_seed: int | None = None
    report: bool = False
    allow_download: bool = False  # hub models; those of the catalog are fetched beforehand
    ledger: LedgerFile | None = None
    device: str = "auto"
    device_map: str | None = None

    def __call__(self) -> PipelineEngine:
        return PipelineEngine(self)


class PipelineEngine:
    """documents -> pipeline -> Result. Raises DpredactError if tagger or model cannot load."""

    def __init__(self, settings: PipelineFactory) -> None:
        from dpredact import tagging

        self._settings = settings
        self._ledger: Ledger | None = None
        if settings.ledger is not None:
            from dpredact.jobs import ledger

            file = settings.ledger
            self._ledger = ledger.Ledger(file.path, file.key, file.limit)
        self.spent = False
        policy = settings.policy
        self._tagger = tagging.build(policy.tagger, policy)
        self._model = None
        if policy.needs_model:
            from dpredact import lm

            self._model = lm.load(
                policy.model,
                device=settings.device,
                device_map=settings.device_map,
                allow_download=settings.allow_download,
            )

    @property
    def draws(self) -> bool:
        """Can several documents be drawn side by side here?"""
        return self._model is not None

    def __call__(self, given: Input, tokens: Tokens) -> Result:
        from dpredact import pipeline

        settings = self._settings
        self.spent = False

        def spend(policy: Policy, promised: Promise) -> None:
            if self._ledger is not None:
                self._ledger.spend(given.data, policy, promised)
            self.spent = True

        report: dict[str, Any] | None = {} if settings.report else None
        document, corrected = self._opened(given)
        release = pipeline.rewrite(
            document,
            settings.policy,
            self._model,
            tagger=self._tagger,
            tagging=corrected,
            progress=tokens,
            report=report,
            unsafe_seed=settings.unsafe_seed,
            spend=spend,
        )
        return _result(release, report)

    def many(
        self, tasks: Iterator[Any], told: Callable[[Any, int], None], together: int
    ) -> Iterator[tuple[Any, Result]]:
        """Results of pool tasks, several documents drawn side by side, as they end."""
        from dpredact import pipeline

        spent: set[int] = set()
        latest: list[Any] = []

        def request(task: Any) -> pipeline.Request:
            report: dict[str, Any] | None = {} if self._settings.report else None

            def begin(policy: Policy, promised: Promise | None) -> None:
                if not task.begin():
                    raise _Dropped
                latest[:] = [task]
                if promised is not None:
                    if self._ledger is not None:
                        self._ledger.spend(task.given.data, policy, promised)
                    spent.add(id(task))

            return pipeline.Request(task, lambda: self._opened(task.given), begin, report)

        results = pipeline.rewrite_many(
            (request(task) for task in tasks),
            self._settings.policy,
            self._model,
            tagger=self._tagger,
            progress=lambda n: told(latest[0], n),
            unsafe_seed=self._settings.unsafe_seed,
            together=together,
        )
        for made, outcome in results:
            task, report = made.label, made.report
            if isinstance(outcome, _Dropped):
                continue
            if isinstance(outcome, Exception):
                yield task, _went_wrong(task.given, outcome, spent=id(task) in spent)
            else:
                yield task, _result(outcome, report)

    def _opened(self, given: Input) -> tuple[Document, Tagging | None]:
        """The document and a person's corrections. Raises DocumentError."""
        from dpredact import documents

        document = documents.read(given.data, given.name)
        if document.output_name != written_name(given.name):
            raise DocumentError(
                "the file is of another kind than its name says",
                next_step="give it the ending that fits its content",
            )
        return document, _corrected(given, document)


class _Dropped(Exception):
    """The job was told to stop before this document began."""


def _result(release: Release, report: dict[str, Any] | None) -> Result:
    return Result(
        status=release.status,
        data=release.data,
        certificate=release.certificate,
        finished=release.finished,
        epsilon=dict(release.epsilon),
        epsilon_all=release.epsilon_all,
        remarks=release.remarks,
        report=report,
    )


def _corrected(given: Input, document: Document) -> Tagging | None:
    """The spans that a person left in the sidecar; None without one. Raises DocumentError."""
    from dpredact.tagging import sidecar

    if given.corrections is None:
        return None
    text = given.corrections.decode("utf-8", "replace")
    return sidecar.parse(text, document, f"{given.name}{sidecar.SUFFIX}")


def run(engine: Engine, given: Input, tokens: Tokens) -> Result:
    """The engine's Result for one document; a refusal or a fault is a Result as well."""
    try:
        return engine(given, tokens)
    except Exception as error:
        return _went_wrong(given, error, spent=engine.spent)


def _went_wrong(given: Input, error: Exception, *, spent: bool) -> Result:
    """The Result of a document that was refused or failed."""
    if not isinstance(error, DpredactError):
        return Result("failed", reason=_fault(error), code=5, spent=spent)
    # 3 and 4: this document was looked at and must not go out. The rest is a failure.
    status = "refused" if error.exit_code in (3, 4) else "failed"
    place = error.place.removeprefix(given.name).lstrip(":, ")
    reason = f"{place}: {error.message}" if place else error.message
    return Result(
        status, reason=reason, next_step=error.next_step, code=error.exit_code, spent=spent
    )


def _fault(error: BaseException) -> str:
    """Type and place of an unforeseen exception; never its message."""
    where = "outside the package"
    for frame in traceback.extract_tb(error.__traceback__):
        path = Path(frame.filename)
        if path.is_relative_to(_PACKAGE):
            where = f"{path.relative_to(_PACKAGE.parent).as_posix()}:{frame.lineno}"
    return f"internal error: {type(error).__name__} at {where}"


def fetch_models(policy: Policy) -> None:
    """Download what `policy` needs and the catalog has, unless it is there. Raises ModelError."""
    from dpredact.lm import catalog

    wanted = [TAGGER_MODELS[name] for name in policy.tagger.use if name in TAGGER_MODELS]
    if policy.needs_model and policy.model in catalog.ENTRIES:
        wanted.append(policy.model)
    for name in wanted:
        catalog.fetch(name)
