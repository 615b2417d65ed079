"""The path of one document: tag, build views, promise, write, put back, certify.

Everything before the model is a function of document and policy; everything after it is a
function of the skeleton and the drawn tokens. Private words are in the document, the spans'
contents and the private views, and stay there.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from dpredact import contexts
from dpredact.certificate import statement
from dpredact.documents.interface import Document, Edit
from dpredact.errors import DocumentError, DpredactError, ModelError, NotCovered
from dpredact.policy import Policy
from dpredact.promise import Promise, promise, view_names
from dpredact.tagging import leftovers
from dpredact.tagging.interface import Span, Tagger, Tagging

if TYPE_CHECKING:
    from dpredact.lm.interface import LanguageModel
    from dpredact.writing import Writing


@dataclass(frozen=True)
class Release:
    """What leaves: the file, its text, its certificate. ε as decimal strings, rounded up."""

    text: str = field(repr=False)
    data: bytes = field(repr=False)
    certificate: dict[str, Any] = field(repr=False)
    finished: str  # 'stop', or 'length' when T ran out before the model ended
    status: str  # 'written', or 'copied' when nothing was tagged and the policy says so
    epsilon: dict[str, str]
    epsilon_all: str
    remarks: tuple[str, ...] = ()
    drawn: tuple[tuple[int, int], ...] = ()  # stretches of `text` that the model wrote


def rewrite(
    document: Document | str,
    policy: Policy,
    model: LanguageModel | None = None,
    *,
    tagger: Tagger | None = None,
    tagging: Tagging | None = None,
    progress: Callable[[int], None] = lambda tokens: None,
    report: dict[str, Any] | None = None,
    unsafe_seed: int | None = None,
    spend: Callable[[Policy, Promise], None] = lambda policy, promise: None,
) -> Release:
    """Rewrite one document under `policy`; or raise and release nothing.

    document: a Document, or a text. model: needed if a group's method has a private view;
        loaded from the policy's name if None. tagger: built from the policy if None.
    tagging: spans that are already known (a person's corrections); the tagger then rests.
    spend: called once before the first draw with what this release costs; it may raise (a
        ledger's limit), and then nothing is drawn.
    report: filled with the owner's private diagnostics (never to be released).

    Raises NotCovered (nothing tagged, tagger incomplete), PolicyError, ModelError.
    """
    prepared = prepare(
        document, policy, model, tagger=tagger, tagging=tagging, report=report
    )
    prepared.spend(spend)
    if prepared.writing is not None:
        from dpredact.batching import Desk

        desk: Desk[Prepared] = Desk(prepared.writing.model, draw_for(unsafe_seed), progress=progress)
        with guarded(prepared.document.name):
            for _ in desk.serve([(prepared, prepared.writing.lanes)]):
                pass
    return prepared.release(safe=unsafe_seed is None)


def draw_for(unsafe_seed: int | None) -> Any:
    """The operating system's randomness, or the repeatable draw of tests."""
    from dpredact.privacy.sampling import SystemDraw, UnsafeSeededDraw

    return SystemDraw() if unsafe_seed is None else UnsafeSeededDraw(unsafe_seed)


def prepare(
    document: Document | str,
    policy: Policy,
    model: LanguageModel | None = None,
    *,
    tagger: Tagger | None = None,
    tagging: Tagging | None = None,
    report: dict[str, Any] | None = None,
) -> Prepared:
    """Everything before the first draw; arguments and errors as for `rewrite`. Spends nothing."""
    started = time.perf_counter()
    if isinstance(document, str):
        from dpredact import documents

        if any("\ud800" <= c <= "\udfff" for c in document):  # Python's own error quotes all of it
            raise DocumentError("the text holds half of a surrogate pair, which no file can store")
        document = documents.read(document.encode("utf-8"), "document.txt")
    with guarded(document.name):
        found = tagging if tagging is not None else _tag(document, policy, tagger)
    if not found.complete:
        raise NotCovered(
            "the taggers could not read all of it: " + "; ".join(found.reasons),
            next_step="see `dpredact tags`; set tagger.language, split the file, or correct the "
            "spans by hand",
            place=document.name,
        )
    regions = contexts.regions(_at_blocks(found.spans, document), policy)
    if not regions and policy.untagged == "refuse":
        raise NotCovered(
            "nothing private was found, so nothing would be protected",
            next_step="check with `dpredact tags`; set untagged: copy or untagged: rewrite if "
            "that is right",
            place=document.name,
        )
    tagged = time.perf_counter()
    writing = None
    if policy.needs_model and (regions or policy.untagged != "copy"):
        if model is None:
            from dpredact import lm

            model = lm.load(policy.model)
        from dpredact.writing import Writing

        with guarded(document.name):  # tokenizers quote what they choke on
            writing = Writing(document, policy, model, regions, watch=report is not None)
    if report is not None:
        report["seconds"] = {"tagging": tagged - started}
    return Prepared(document, policy, found, regions, writing, report, tagged)


@dataclass(repr=False)
class Prepared:
    """One document up to the first draw, and from the last draw to its release."""

    document: Document
    policy: Policy
    found: Tagging
    regions: tuple[contexts.Region, ...]
    writing: Writing | None  # None: nothing is drawn
    report: dict[str, Any] | None
    tagged: float

    def spend(self, spend: Callable[[Policy, Promise], None]) -> None:
        """Tell a ledger what the draws will cost, before them."""
        if self.writing is not None:
            spend(self.policy, self.writing.plan.promise)

    def release(self, *, safe: bool) -> Release:
        """Put the drawn texts back, certify, and look at what was not drawn."""
        if self.writing is None:
            release, edits = _without_model(self.document, self.policy, self.regions)
        else:
            release, edits = _with_model(self.document, self.policy, self.writing, safe)
        leftovers.search(
            self.document, release.data, release.text, release.drawn, self.found.spans, self.policy, edits
        )
        if self.report is not None:
            self._tell(self.report, release)
        return release

    def _tell(self, report: dict[str, Any], release: Release) -> None:
        """The owner's private diagnostics."""
        text = self.document.text
        words = [(r.entity, text[r.start : r.end]) for r in self.regions]
        drawn = (release.text[a:b] for a, b in release.drawn)
        report["reappeared"] = leftovers.reappeared(drawn, words)
        report["seconds"]["writing"] = time.perf_counter() - self.tagged
        report["spans"] = _spans_report(self.document, self.regions)
        if self.writing is not None:
            report["realised"] = self.writing.mixer.record
            report["remaining"] = self.writing.mixer.remaining()


@dataclass(frozen=True)
class Request:
    """One of many documents. `label` is the caller's own. `begin` is called right before the
    first draw; it may raise DpredactError, and then nothing of this document is drawn."""

    label: Any
    open: Callable[[], tuple[Document, Tagging | None]] = field(repr=False)
    begin: Callable[[Policy, Promise | None], None] = lambda policy, promise: None
    report: dict[str, Any] | None = field(default=None, repr=False)


def rewrite_many(
    requests: Iterable[Request],
    policy: Policy,
    model: LanguageModel,
    *,
    tagger: Tagger,
    progress: Callable[[int], None] = lambda tokens: None,
    unsafe_seed: int | None = None,
    together: int = 8,
    room: int | None = None,
) -> Iterator[tuple[Request, Release | Exception]]:
    """Several documents side by side; yields (request, Release or what went wrong) as they end.

    A document is taken from `requests` only when there is room for its rows. An error of one
    document is its own result; an error of the model ends all that were being written.
    """
    from dpredact.batching import Desk

    ended: list[tuple[Request, Release | Exception]] = []
    going: dict[int, tuple[Request, Prepared]] = {}

    def jobs() -> Iterator[tuple[int, Sequence[Any]]]:
        for number, request in enumerate(requests):
            try:
                with guarded(""):
                    document, tagging = request.open()
                    prepared = prepare(
                        document, policy, model, tagger=tagger, tagging=tagging,
                        report=request.report,
                    )  # fmt: skip
                promised = prepared.writing.plan.promise if prepared.writing else None
                request.begin(policy, promised)
            except Exception as problem:
                if getattr(problem, "fatal", False):
                    raise
                ended.append((request, problem))
                continue
            going[number] = (request, prepared)
            yield number, prepared.writing.lanes if prepared.writing else []

    source = jobs()
    while True:
        desk: Desk[int] = Desk(
            model, draw_for(unsafe_seed), room=room, most_jobs=together, progress=progress
        )
        try:
            for number in desk.serve(source):
                request, prepared = going.pop(number)
                try:
                    with guarded(prepared.document.name):
                        ended.append((request, prepared.release(safe=unsafe_seed is None)))
                except DpredactError as problem:
                    ended.append((request, problem))
                yield from _drained(ended)
        except Exception as problem:
            if getattr(problem, "fatal", False):
                raise
            for request, prepared in going.values():
                ended.append((request, _clean(type(problem), prepared.document.name)))
            going.clear()
            yield from _drained(ended)
            continue
        yield from _drained(ended)
        return


def _drained(ended: list[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    while ended:
        yield ended.pop(0)


def _tag(document: Document, policy: Policy, tagger: Tagger | None) -> Tagging:
    from dpredact.tagging import build, combined

    return combined.tag_blocks(tagger or build(policy.tagger, policy), document)


def _at_blocks(spans: Sequence[Span], document: Document) -> list[Span]:
    """Spans cut at block borders, where a chunk may end: a person's own may cross them."""
    ends, out = [b.end for b in document.blocks], []
    for span in spans:
        for block in islice(document.blocks, bisect_right(ends, span.start), None):
            if span.end <= block.start:
                break
            start, end = max(span.start, block.start), min(span.end, block.end)
            out.append(replace(span, start=start, end=end))
    return out


def _without_model(
    document: Document, policy: Policy, regions: Sequence[contexts.Region]
) -> tuple[Release, list[Edit]]:
    """redact and keep: labels in place of words, nothing drawn."""
    edits = [Edit(r.start, r.end, f"[{r.group}]") for r in regions]
    data = document.render(edits)
    promised = promise(policy, dict.fromkeys(view_names(policy), 0), 1)
    chunks: list[statement.Chunk] = []
    certificate = statement.build(
        document.output_name, data, policy, promised, chunks, None, safe=True, finished="stop"
    )
    status = "written" if regions else "copied"
    return _release(document, data, certificate, promised, "stop", status, edits), edits


def _with_model(
    document: Document, policy: Policy, writing: Writing, safe: bool
) -> tuple[Release, list[Edit]]:
    """Put the drawn texts back and certify."""
    with guarded(document.name):
        edits, finished = writing.finish()
    data = document.render(edits)
    promised = writing.plan.promise
    certificate = statement.build(
        document.output_name, data, policy, promised, writing.chunks(),
        model_facts(writing.model), safe=safe, finished=finished,
    )  # fmt: skip
    drawn = writing.drawn()
    release = _release(document, data, certificate, promised, finished, "written", edits, drawn)
    return release, edits


class guarded:
    """Exceptions of the model stage lose their words: they could quote a private view."""

    def __init__(self, place: str) -> None:
        self._place = place

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is None or not issubclass(kind, Exception) or issubclass(kind, DpredactError):
            return
        clean = _clean(kind, self._place)
        try:
            raise clean from None
        finally:
            clean.__context__ = None  # `from None` only hides it; some loggers look


def _clean(kind: type[BaseException], place: str) -> ModelError:
    return ModelError(
        f"tagging or writing stopped with {kind.__name__}; nothing was written",
        next_step="try again with fewer or shorter documents at once; a run that was thrown "
        "away may have spent budget",
        place=place,
    )


def model_facts(model: LanguageModel) -> statement.ModelFacts:
    return statement.ModelFacts(model.name, model.digest, model.dtype, model.device)


def _release(
    document: Document,
    data: bytes,
    certificate: dict[str, Any],
    promised: Promise,
    finished: str,
    status: str,
    edits: Sequence[Edit],
    written: Sequence[tuple[int, int]] = (),
) -> Release:
    from dpredact.documents.interface import replaced

    drawn, shift = [], 0
    for edit in edits:
        if (edit.start, edit.end) in written:
            drawn.append((edit.start + shift, edit.start + shift + len(edit.text)))
        shift += len(edit.text) - (edit.end - edit.start)
    return Release(
        text=replaced(document.text, edits),
        data=data,
        certificate=certificate,
        finished=finished,
        status=status,
        epsilon={g.name: g.epsilon_text if g.method != "keep" else "none" for g in promised.groups},
        epsilon_all=promised.epsilon_all_text,
        remarks=document.remarks(edits),
        drawn=tuple(drawn),
    )


def _spans_report(document: Document, regions: Sequence[contexts.Region]) -> list[dict[str, Any]]:
    return [
        {"start": r.start, "end": r.end, "group": r.group, "entity": r.entity,
         "words": document.text[r.start : r.end]}
        for r in regions
    ]  # fmt: skip
