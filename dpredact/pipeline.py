"""The path of one document: tag, build views, promise, write, put back, certify.

Everything before the model is a function of document and policy; everything after it is a
function of the skeleton and the drawn tokens. Private words are in the document, the spans'
contents and the private views, and stay there.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
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
    started = time.perf_counter()
    if isinstance(document, str):
        from dpredact import documents

        if any("\ud800" <= c <= "\udfff" for c in document):  # Python's own error quotes all of it
            raise DocumentError("the text holds half of a surrogate pair, which no file can store")
        document = documents.read(document.encode("utf-8"), "document.txt")
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
    if not policy.needs_model or (not regions and policy.untagged == "copy"):
        release = _without_model(document, policy, regions)
    else:
        if model is None:
            from dpredact import lm

            model = lm.load(policy.model)
        release = _with_model(
            document, policy, model, regions, progress, report, unsafe_seed, spend
        )
    leftovers.search(document, release.data, release.text, release.drawn, found.spans, policy)
    if report is not None:
        words = [(r.entity, document.text[r.start : r.end]) for r in regions]
        report["reappeared"] = leftovers.reappeared((release.text[a:b] for a, b in release.drawn), words)
        report["seconds"] = {"tagging": tagged - started, "writing": time.perf_counter() - tagged}
        report["spans"] = _spans_report(document, regions)
    return release


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
) -> Release:
    """redact and keep: labels in place of words, nothing drawn."""
    edits = [Edit(r.start, r.end, f"[{r.group}]") for r in regions]
    data = document.render(edits)
    promised = promise(policy, dict.fromkeys(view_names(policy), 0), 1)
    chunks: list[statement.Chunk] = []
    certificate = statement.build(
        document.output_name, data, policy, promised, chunks, None, safe=True, finished="stop"
    )
    return _release(
        document, data, certificate, promised, "stop", "written" if regions else "copied", edits
    )


def _with_model(
    document: Document,
    policy: Policy,
    model: LanguageModel,
    regions: Sequence[contexts.Region],
    progress: Callable[[int], None],
    report: dict[str, Any] | None,
    unsafe_seed: int | None,
    spend: Callable[[Policy, Promise], None],
) -> Release:
    """Draw what is to be drawn, put it back, certify."""
    from dpredact.batching import Desk
    from dpredact.privacy.sampling import SystemDraw, UnsafeSeededDraw
    from dpredact.writing import Writing

    with guarded(document.name):  # tokenizers quote what they choke on
        writing = Writing(document, policy, model, regions, watch=report is not None)
    draw = SystemDraw() if unsafe_seed is None else UnsafeSeededDraw(unsafe_seed)
    spend(policy, writing.plan.promise)
    with guarded(document.name):
        for _ in Desk(model, draw, progress=progress).serve([(writing, writing.lanes)]):
            pass
        edits, finished = writing.finish()
    data = document.render(edits)
    promised = writing.plan.promise
    certificate = statement.build(
        document.output_name, data, policy, promised, writing.chunks(), model_facts(model),
        safe=unsafe_seed is None, finished=finished,
    )  # fmt: skip
    if report is not None:
        report["realised"] = writing.mixer.record
        report["remaining"] = writing.mixer.remaining()
    return _release(
        document, data, certificate, promised, finished, "written", edits, writing.drawn()
    )


class guarded:
    """Exceptions of the model stage lose their words: they could quote a private view."""

    def __init__(self, place: str) -> None:
        self._place = place

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is None or not issubclass(kind, Exception) or issubclass(kind, DpredactError):
            return
        clean = ModelError(
            f"the model stopped with {kind.__name__}; nothing was written",
            next_step="try again with fewer or shorter documents at once; a run that was thrown "
            "away may have spent budget",
            place=self._place,
        )
        try:
            raise clean from None
        finally:
            clean.__context__ = None  # `from None` only hides it; some loggers look


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
