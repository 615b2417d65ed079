"""The token-recovery game: which of these candidates stood in the document?

For one group of one document there are |C| candidates: the true words, and words of the same
kind from other documents. The truth's place is drawn at random. An attacker gives every
candidate a score from the release and picks the highest; an attacker who cannot tell two
candidates apart has not found the truth.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dpredact.evaluation.corpus import Item
from dpredact.evaluation.scene import Scene

MIN_K = (5, 10, 20, 30, 40)  # per cent
ATTACKERS = ("loss", *(f"min-{k}%" for k in MIN_K), "informed")
_NEAREST = 24  # decoys come from so many pool entries of about the truth's length


@dataclass(frozen=True)
class Game:
    """One round. candidates[i]: number of a slot in reading order -> words of candidate i."""

    group: str
    candidates: tuple[Mapping[int, str], ...] = field(repr=False)
    truth: int


@dataclass(frozen=True)
class Outcome:
    """hit: the truth alone has the highest score. tied: so many share it, the truth among them."""

    hit: bool
    tied: int = 0

    @property
    def guess(self) -> float:
        """Chance of an attacker who guesses among the tied."""
        return 1.0 if self.hit else (1.0 / self.tied if self.tied else 0.0)


def pool(items: Sequence[Item], groups: Mapping[str, str]) -> dict[str, dict[str, set[str]]]:
    """Words of each group -> names of the documents in which they stand.

    groups: entity -> group.
    """
    out: dict[str, dict[str, set[str]]] = {}
    for item in items:
        for span in item.spans:
            group = groups.get(span.entity)
            if group is not None:
                out.setdefault(group, {}).setdefault(item.words(span), set()).add(item.name)
    return out


def deal(
    scene: Scene, group: str, words: Mapping[str, set[str]], size: int, seed: int
) -> Game | None:
    """A game about `group` with `size` candidates; None if the pool has too few words.

    seed: for the choice of decoys and the truth's place, nothing else. Mentions of the same
    words get the same decoy.
    """
    rng = random.Random(f"{seed}|{scene.item.name}|{group}")
    slots = {
        n: p for n, p in enumerate(scene.context.slots)
        if p.group == group and p.view is not None
    }  # fmt: skip
    here = scene.item.text.casefold()
    usable = [w for w, names in sorted(words.items())
              if names - {scene.item.name} and w.casefold() not in here]  # fmt: skip
    known = list(dict.fromkeys(p.words for p in slots.values()))
    taken: set[str] = set()
    decoys: list[dict[int, str]] = [{} for _ in range(size - 1)]
    for true in known:
        for decoy in decoys:
            free = [w for w in usable if w not in taken]
            near = sorted(free, key=lambda w: (abs(len(w) - len(true)), w))[:_NEAREST]
            if not near:
                return None
            word = rng.choice(near)
            taken.add(word)
            decoy.update({n: word for n, p in slots.items() if p.words == true})
    place = rng.randrange(size)
    truth = {n: p.words for n, p in slots.items()}
    candidates = [*decoys[:place], truth, *decoys[place:]]
    return Game(group, tuple(candidates), place) if slots else None


def judge(scores: Sequence[float], truth: int) -> Outcome:
    """Did the attacker find the truth? A tie is a miss; NaN counts as the lowest score."""
    clean = [-math.inf if math.isnan(s) else s for s in scores]
    best = max(clean)
    tied = sum(s == best for s in clean)
    if clean[truth] < best:
        return Outcome(False)
    return Outcome(True) if tied == 1 else Outcome(False, tied)


def loss_score(log_p: Sequence[float]) -> float:
    """LOSS: minus the negative log-likelihood of the release. Nats."""
    return math.fsum(log_p)


def min_k_score(log_p: Sequence[float], per_cent: int) -> float:
    """MIN-K%: mean over the k% of released tokens that are least likely; at least one.

    Source: Shi et al. 2024 (detecting pretraining data), on a release in place of a text.
    """
    if not log_p:
        return 0.0
    count = max(1, len(log_p) * per_cent // 100)
    return math.fsum(sorted(log_p)[:count]) / count


def group_of_entities(groups: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Entity -> group, families opened up."""
    from dpredact.policy.entities import FAMILIES

    out: dict[str, str] = {}
    for name, entities in groups.items():
        for entity in entities:
            for one in (entity, *FAMILIES.get(entity, ())):
                out[one] = name
    return out


def verbatim(text: str, words: Mapping[int, str]) -> float:
    """How many of a candidate's words stand in a text as they are."""
    said = text.casefold()
    return float(sum(w.casefold() in said for w in words.values()))


