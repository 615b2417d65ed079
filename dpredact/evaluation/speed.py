"""Where the time goes: documents × (1 + m) rows through the package's own loop, stage by stage,
beside plain `generate` of the same rows in the same run.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch

from dpredact import decoding
from dpredact.mixing import Mixer, mix_together
from dpredact.policy import Group, Method, Policy
from dpredact.privacy.sampling import SystemDraw
from dpredact.promise import promise

if TYPE_CHECKING:
    from dpredact.lm.interface import LanguageModel

# One group per m, in the order in which they are added.
_ENTITIES = (
    ("PERSON",), ("DATE", "TIME"), ("LOCATION", "ADDRESS"), ("ORG",),
    ("EMAIL", "PHONE", "CARD", "IBAN", "ID"), ("AGE", "DEMOGRAPHIC"), ("QUANTITY",), ("MISC",),
)  # fmt: skip


@dataclass(frozen=True)
class Timing:
    """Seconds of each stage for `documents` side by side; tokens are counted per document."""

    groups: int
    documents: int
    rows: int
    width: int
    tokens: int
    prefill: float
    decode: float  # the model's forward passes
    support: float
    mixing: float
    draw: float
    plain_prefill: float | None  # plain generate, the same rows and lengths
    plain_decode: float | None
    memory: int  # peak bytes of the process (CPU) or of the device

    @property
    def steps(self) -> float:
        return self.decode + self.support + self.mixing + self.draw

    def figures(self) -> dict[str, Any]:
        """tokens_per_second: drawn tokens of all documents over decoding time; ratio: against
        plain generate's decoding of the same rows; own_share: support, mixing and draw over a
        step; documents_per_minute: prefill included."""
        drawn = self.documents * self.tokens
        out = asdict(self) | {
            "tokens_per_second": drawn / self.steps,
            "own_share": (self.support + self.mixing + self.draw) / self.steps,
            "documents_per_minute": 60 * self.documents / (self.prefill + self.steps),
        }
        if self.plain_decode:
            out["plain_tokens_per_second"] = drawn / self.plain_decode
            out["ratio"] = self.plain_decode / self.steps
        return out


def policy(groups: int, epsilon: float = 16.0) -> Policy:
    """`groups` adaptive groups; the kinds that are left over are redacted."""
    if not 1 <= groups <= len(_ENTITIES):
        raise ValueError(f"need 1 to {len(_ENTITIES)} groups")
    named = {
        f"G{i + 1}": Group(entities=e, method=Method.DP_FUSION, epsilon=epsilon, spending="adaptive")
        for i, e in enumerate(_ENTITIES[:groups])
    }
    rest = tuple(x for e in _ENTITIES[groups:] for x in e)
    if rest:
        named["other"] = Group(entities=rest, method=Method.REDACT)
    return Policy(version=1, groups=named)


def measure(
    model: LanguageModel,
    text: str,
    *,
    groups: int,
    documents: int,
    width: int,
    tokens: int,
    plain: bool = True,
    said: Callable[[str], None] = lambda line: None,
) -> Timing:
    """Time `tokens` draws of `documents` × (1 + groups) rows of `width` tokens of `text`.

    End tokens are barred, so that both sides write the same number of tokens.
    """
    rules = policy(groups)
    names = tuple(f"G{i + 1}" for i in range(groups))
    base = model.encode(text)
    base = (base * (width // max(1, len(base)) + 2))[: width + groups + documents]
    rows = [base[d + g : d + g + width] for d in range(documents) for g in range(groups + 1)]
    made = promise(rules, dict.fromkeys(names, tokens), model.vocab_size)
    support = decoding.support_of(made, rules, model.controls | model.eos)
    mixers = [Mixer(made, rules) for _ in range(documents)]
    spent = dict.fromkeys(("prefill", "decode", "support", "mixing", "draw"), 0.0)
    clock = _Clock(model, spent)
    draw = SystemDraw()
    with clock("prefill"):
        session = model.open(rows, width, tokens)
        session.logits()
    for step in range(tokens):
        logits = session.logits()
        with clock("support"):
            publics = logits[:: groups + 1]
            picked = support.many(publics, [frozenset()] * documents)
            cut = [
                logits[d * (groups + 1) : (d + 1) * (groups + 1), t].to("cpu", torch.float64)
                for d, t in enumerate(picked)
            ]
        with clock("mixing"):
            mixed = mix_together([(m, c, names) for m, c in zip(mixers, cut, strict=True)])
        with clock("draw"):
            ids = [int(t[draw(p)]) for t, p in zip(picked, mixed, strict=True)]
        if step < tokens - 1:
            with clock("decode"):
                session.append([i for i in ids for _ in range(groups + 1)])
    said(f"{groups} groups, {documents} documents: own loop done")
    before = after = None
    if plain:
        before, after = _plain(model, rows, width, tokens)
    return Timing(groups, documents, len(rows), width, tokens, **spent,
                  plain_prefill=before, plain_decode=after, memory=_memory(model))  # fmt: skip


def _plain(
    model: LanguageModel, rows: Sequence[Sequence[int]], width: int, tokens: int
) -> tuple[float | None, float | None]:
    """(prefill, decode) seconds of plain generate: one token, and the rest."""
    generate = getattr(model, "generate_plain", None)
    if generate is None:
        return None, None
    started = time.perf_counter()
    generate(rows, width, 1)
    first = time.perf_counter() - started
    started = time.perf_counter()
    generate(rows, width, tokens)
    return first, max(1e-9, time.perf_counter() - started - first)


class _Clock:
    """`with clock(stage)`: adds the seconds of the block to a stage."""

    def __init__(self, model: LanguageModel, spent: dict[str, float]) -> None:
        self._spent, self._device = spent, model.device
        self._stage, self._from = "", 0.0

    def __call__(self, stage: str) -> _Clock:
        self._stage = stage
        return self

    def _now(self) -> float:
        if self._device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    def __enter__(self) -> None:
        self._from = self._now()

    def __exit__(self, *_: object) -> None:
        self._spent[self._stage] += self._now() - self._from


def _memory(model: LanguageModel) -> int:
    if model.device == "cuda":
        return int(torch.cuda.max_memory_allocated())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
