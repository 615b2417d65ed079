"""The path of one document: tag, build views, promise, write, put back, certify.

Everything before the model is a function of document and policy; everything after it is a
function of the skeleton and the drawn tokens. Private words are in the document, the spans'
contents and the private views, and stay there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dpredact import contexts, planning, prompts
from dpredact.certificate import statement
from dpredact.documents.interface import Document, Edit
from dpredact.errors import DpredactError, ModelError, NotCovered
from dpredact.policy import Policy
from dpredact.promise import Promise, promise, view_names
from dpredact.tagging import leftovers
from dpredact.tagging.interface import Tagger, Tagging

if TYPE_CHECKING:
    from dpredact.lm.interface import LanguageModel

BATCH_TOKENS = 40_000  # padded tokens that decode together: bounds the memory of the cache


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
) -> Release:
    """Rewrite one document under `policy`; or raise and release nothing.

    document: a Document, or a text. model: needed if a group's method has a private view;
        loaded from the policy's name if None. tagger: built from the policy if None.
    tagging: spans that are already known (a person's corrections); the tagger then rests.
    report: filled with the owner's private diagnostics (never to be released).

    Raises NotCovered (nothing tagged, tagger incomplete), PolicyError, ModelError.
    """
    started = time.perf_counter()
    if isinstance(document, str):
        from dpredact import documents

        document = documents.read(document.encode("utf-8"), "document.txt")
    found = tagging if tagging is not None else _tag(document, policy, tagger)
    if not found.complete:
        raise NotCovered(
            "the taggers could not read all of it: " + "; ".join(found.reasons),
            next_step="see `dpredact tags`; set tagger.language, split the file, or correct the "
            "spans by hand",
            place=document.name,
        )
    regions = contexts.regions(found.spans, policy)
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
        writer = _spans_writer if policy.scope == "spans" else _document_writer
        release = writer(document, policy, model, regions, progress, report, unsafe_seed)
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


def _without_model(
    document: Document, policy: Policy, regions: Sequence[contexts.Region]
) -> Release:
    """redact and keep: labels in place of words, nothing drawn."""
    edits = [label_edit(document, policy, r) for r in regions]
    data = document.render(edits)
    promised = promise(policy, dict.fromkeys(view_names(policy), 0), 1)
    chunks: list[statement.Chunk] = []
    certificate = statement.build(
        document.output_name, data, policy, promised, chunks, None, safe=True, finished="stop"
    )
    return _release(
        document, data, certificate, promised, "stop", "written" if regions else "copied", edits
    )


def label_edit(document: Document, policy: Policy, region: contexts.Region) -> Edit:
    """The label in a region's place; white space at line ends inside it is kept as line ends."""
    return Edit(region.start, region.end, f"[{region.group}]")


def _document_writer(
    document: Document,
    policy: Policy,
    model: LanguageModel,
    regions: Sequence[contexts.Region],
    progress: Callable[[int], None],
    report: dict[str, Any] | None,
    unsafe_seed: int | None,
) -> Release:
    """scope: document. Every unit is written anew; regions elsewhere become labels."""
    from dpredact import decoding
    from dpredact.privacy.sampling import SystemDraw, UnsafeSeededDraw

    frame = prompts.frame(model, prompts.REWRITE, policy.placeholder)
    if len(frame) > planning.PROMPT:
        raise ModelError("this model's chat template is longer than the room kept for it")
    what = planning.plan(
        document, policy, regions, model.encode, model.vocab_size, model.window
    )
    mixer = decoding.Mixer(what.promise, policy)
    if report is not None:
        mixer.watch()
    support = decoding.support_of(what.promise, policy, model.controls)
    draw = SystemDraw() if unsafe_seed is None else UnsafeSeededDraw(unsafe_seed)
    edits = [label_edit(document, policy, r) for r in what.kept]
    finished = "stop"
    lanes = [_lane(unit, frame, policy, model, mixer, support) for unit in what.units]
    with guarded(document.name):
        for batch in decoding.in_batches(lanes, BATCH_TOKENS):
            decoding.decode(model, batch, draw, progress)
        texts = [model.decode(lane.ids) for lane in lanes]
    if not all(lane.finished for lane in lanes):
        finished = "length"
    for unit, text in zip(what.units, texts, strict=True):
        edits.append(Edit(unit.context.start, unit.context.end, tidy(text, document, unit, policy)))
    edits.sort(key=lambda e: e.start)
    data = document.render(edits)
    chunks = [statement.Chunk(u.limit, u.context.views()) for u in what.units]
    certificate = statement.build(
        document.output_name, data, policy, what.promise, chunks, model_facts(model),
        safe=unsafe_seed is None, finished=finished,
    )  # fmt: skip
    if report is not None:
        report["realised"] = mixer.record
        report["remaining"] = mixer.remaining()
    written = [(u.context.start, u.context.end) for u in what.units]
    return _release(
        document, data, certificate, what.promise, finished, "written", edits, written
    )


def _lane(
    unit: planning.Unit, frame: prompts.Frame, policy: Policy, model: LanguageModel, mixer: Any, support: Any
) -> Any:
    from dpredact import decoding

    rows: dict[str | None, Sequence[int]] = {
        view: frame.wrap(unit.context.ids(model.encode, view))
        for view in (None, *unit.context.views())
    }
    width = len(rows[None]) + (0 if policy.placeholder == "token" else policy.view_reserve)
    return decoding.lane(
        rows,
        mixer,
        support,
        width=width,
        limit=unit.limit,
        no_repeat=policy.decoding.no_repeat,
        least=min(unit.limit // 2, unit.length // 4),
    )


def tidy(text: str, document: Document, unit: planning.Unit, policy: Policy) -> str:
    """Drawn text made fit for the file: a function of drawn tokens, policy and skeleton.

    Scrubbed patterns become labels; outer white space goes; line ends are the file's.
    """
    from dpredact.tagging import scrub

    text = scrub.scrub(text.strip(), policy)
    source = document.text
    if "\r\n" in source and "\n" not in source.replace("\r\n", ""):
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    return text


def _spans_writer(*_: Any) -> Release:
    raise ModelError(
        "scope: spans is not in this version", next_step="use scope: document"
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
        raise ModelError(
            f"the model stopped with {kind.__name__}; nothing was written",
            next_step="try again with fewer or shorter documents at once; a run that was thrown "
            "away may have spent budget",
            place=self._place,
        ) from None


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
