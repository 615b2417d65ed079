"""The gate: does a file hold private words without a certificate that covers them?

No language model and no torch. A finding says what kind of word stands where; it never
holds the word or its line.
"""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpredact.certificate import sign
from dpredact.errors import DocumentError
from dpredact.jobs.jobfile import is_job_file
from dpredact.jobs.outputs import certificate_path
from dpredact.jobs.walking import CERTIFICATE_SUFFIX
from dpredact.policy import Method, Policy, TaggerSettings

if TYPE_CHECKING:
    from dpredact.documents import Document
    from dpredact.tagging import Span, Tagger

WORDS, CERTIFICATE, EPSILON = "private-words", "certificate", "epsilon"
RULES = {
    WORDS: "Private words without a certificate",
    CERTIFICATE: "A certificate that does not hold",
    EPSILON: "A certificate that promises less than is asked for",
}
_LINES = frozenset({"text/plain", "text/markdown"})  # here the text is the file itself
_LINE_END = re.compile(r"\r\n|\r|\n")

# (entity, words) -> a short digest for the baseline; the words go no further.
Digest = Callable[[str, str], str]


@dataclass(frozen=True)
class Finding:
    """One reason to stop. `start`, `end`: code points of the document's text; `line` and
    `column` (from 1) where that is the file; `where`: the part of a structured file."""

    rule: str
    message: str
    entity: str = ""
    start: int | None = None
    end: int | None = None
    line: int | None = None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    where: str = ""
    sources: tuple[str, ...] = ()
    score: float | None = None
    digest: str = field(default="", repr=False)

    def line_of_json(self) -> dict[str, Any]:
        facts = asdict(self)
        del facts["digest"]
        return facts


@dataclass(frozen=True)
class FileCheck:
    """status: clean, certified, found, unreadable. `problems`: public sentences."""

    path: str
    status: str
    findings: tuple[Finding, ...] = ()
    problems: tuple[str, ...] = ()
    next_step: str = ""
    epsilon_all: str = ""

    @property
    def code(self) -> int:
        if self.status == "unreadable":
            return 3
        return 1 if self.findings else 0


@dataclass
class Gate:
    """What is looked for, and what counts as covered.

    policy None: every core kind of word. max_epsilon: the most that a certificate may say
    for any group. key: certificates must be signed with it. certificates_only: look at files
    that have a certificate, and only at that.
    """

    policy: Policy | None = None
    max_epsilon: float | None = None
    key: Path | None = None
    certificates_only: bool = False
    digest: Digest | None = None
    _tagger: Tagger | None = None

    def check(self, path: Path) -> FileCheck:
        """Raises DpredactError only if the gate itself cannot work (a tagger's model is missing)."""
        try:
            data = path.read_bytes()
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            return FileCheck(str(path), "unreadable", problems=(f"cannot be read: {reason}",))
        beside = certificate_path(path)
        against: list[Finding] = []
        if beside.exists() or beside.is_symlink():
            epsilon, against = self.certificate(data, beside)
            if not against:
                return FileCheck(str(path), "certified", epsilon_all=epsilon)
        if self.certificates_only or (against and against[0].rule == EPSILON):
            status = "found" if against else "clean"
            return FileCheck(str(path), status, tuple(against))
        return self.words(path, data, against)

    # -- the certificate ----------------------------------------------------------------

    def certificate(self, data: bytes, beside: Path) -> tuple[str, list[Finding]]:
        """ε for all groups, and what speaks against the certificate."""
        from dpredact.certificate import verify

        try:
            claim = json.loads(beside.read_bytes())
            if self.key is not None:
                claim = sign.checked(claim, self.key)
            elif sign.is_envelope(claim):
                claim = sign.statement(claim)
            if not isinstance(claim, dict):
                raise ValueError
        except sign.SignatureProblem as error:
            return "", [Finding(CERTIFICATE, error.message)]
        except (OSError, ValueError, RecursionError):
            return "", [Finding(CERTIFICATE, "the certificate cannot be read")]
        verdict = verify(data, claim)
        if verdict.problems:
            return "", [Finding(CERTIFICATE, p) for p in verdict.problems]
        if self.max_epsilon is not None:
            strict = verify(data, claim, max_epsilon=self.max_epsilon)
            return verdict.epsilon_all, [Finding(EPSILON, p) for p in strict.problems]
        return verdict.epsilon_all, []

    # -- the words ----------------------------------------------------------------------

    def words(self, path: Path, data: bytes, against: list[Finding]) -> FileCheck:
        from dpredact import documents
        from dpredact.tagging import combined

        try:
            document = documents.read(data, path.name)
        except DocumentError as error:
            place = error.place.removeprefix(path.name).lstrip(":, ")
            reason = f"{place}: {error.message}" if place else error.message
            return FileCheck(str(path), "unreadable", tuple(against), (reason,), error.next_step)
        tagging = combined.tag_blocks(self.tagger(), document)
        found = [*against, *self.findings(document, tagging.spans)]
        if not tagging.complete:
            return FileCheck(str(path), "unreadable", tuple(found), tagging.reasons)
        return FileCheck(str(path), "found" if found else "clean", tuple(found))

    def tagger(self) -> Tagger:
        from dpredact import tagging

        if self._tagger is None:
            settings = self.policy.tagger if self.policy is not None else TaggerSettings()
            self._tagger = tagging.build(settings, self.policy)
        return self._tagger

    def findings(self, document: Document, spans: Sequence[Span]) -> Iterator[Finding]:
        lines = _Lines(document)
        for span in spans:
            if self.policy is not None:
                group = self.policy.group_of(span.entity)
                if group is None or self.policy.groups[group].method is Method.KEEP:
                    continue
            words = document.text[span.start : span.end]
            yield Finding(
                WORDS,
                f"{span.entity} without a certificate",
                span.entity,
                span.start,
                span.end,
                *lines.place(span.start),
                *lines.place(span.end),
                where=lines.where(span.start),
                sources=span.sources,
                score=span.score,
                digest=self.digest(span.entity, words) if self.digest is not None else "",
            )


class _Lines:
    """Code points to lines and columns, for files that are their own text."""

    def __init__(self, document: Document) -> None:
        self._blocks = document.blocks
        self._from = [b.start for b in document.blocks]
        self._starts: list[int] | None = None
        if document.media_type in _LINES:
            self._starts = [0, *(m.end() for m in _LINE_END.finditer(document.text))]

    def place(self, offset: int) -> tuple[int | None, int | None]:
        if self._starts is None:
            return None, None
        line = bisect.bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def where(self, offset: int) -> str:
        if self._starts is not None:
            return ""
        at = bisect.bisect_right(self._from, offset) - 1
        return self._blocks[at].where if at >= 0 else ""


def subjects(paths: Sequence[Path]) -> list[Path]:
    """The documents that `paths` stand for: a certificate stands for its document. Each once,
    and without the job.json of the job that made them.

    A certificate whose document is gone stays, so that it is told as unreadable.
    """
    out: dict[Path, None] = {}
    for path in paths:
        document = path.with_name(path.name.removesuffix(CERTIFICATE_SUFFIX))
        is_certificate = path.name.endswith(CERTIFICATE_SUFFIX) and path.name != CERTIFICATE_SUFFIX
        out[document if is_certificate else path] = None
    return [path for path in out if not is_job_file(path)]

