"""From a policy and public sizes to what is promised: one event and one ε per group.

`plan` prints it, the decoder keeps to it, the certificate states it and `verify` computes it
again. It reads the policy, the number of tokens that may be drawn (T, from the policy and
the skeleton) and the model's vocabulary size, and nothing else. No torch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from dpredact.errors import PolicyError
from dpredact.policy import Group, Method, Policy
from dpredact.privacy import accounting, calibrate
from dpredact.privacy.accounting import AnyEvent, Draw


WHOLE = "document"  # the one view of a baseline


@dataclass(frozen=True)
class GroupPromise:
    """One group (or the one group of `mode: single`): method, weight, event, ε at δ."""

    name: str
    members: tuple[str, ...]  # policy groups in it; more than one in single mode
    entities: tuple[str, ...]
    method: str  # of `Method`, or a baseline's name
    weight: float
    event: AnyEvent | None  # None for redact and keep
    epsilon: float
    why: str  # how the order was chosen, for people

    @property
    def epsilon_text(self) -> str:
        """ε as the certificate prints it: a decimal, rounded up."""
        return accounting.decimal_up(self.epsilon)


@dataclass(frozen=True)
class Promise:
    """Every group's promise for one document, and the one for all groups together."""

    groups: tuple[GroupPromise, ...]
    delta: float
    draw: Draw
    epsilon_all: float
    total: int | None = None  # T, where known: the draws of the whole document

    @property
    def epsilon_all_text(self) -> str:
        return accounting.decimal_up(self.epsilon_all)

    def private(self) -> tuple[GroupPromise, ...]:
        """Groups with a private view, in policy order."""
        return tuple(g for g in self.groups if g.event is not None)


def view_names(policy: Policy) -> dict[str, tuple[str, ...]]:
    """Name of each private view -> policy groups that it shows. One entry in single mode."""
    private = tuple(policy.private_groups)
    if policy.baseline is not None:
        return {WHOLE: tuple(policy.groups)}
    if policy.mode == "single" and private:
        return {"+".join(private): private}
    return {name: (name,) for name in private}


def promise(
    policy: Policy, tokens: Mapping[str, int], vocabulary: int, total: int | None = None
) -> Promise:
    """What `policy` promises for a document in which view `name` can lose `tokens[name]` draws.

    tokens: per private view, the most draws that can depend on it; 0 for a group without a
        span (its row is row 0, whatever the words are).
    vocabulary: V, an upper bound on the supported tokens, for the draw's slack.
    total: T, the draws of the whole document; without it the number for all groups together
        allows for groups that never stand in the same chunk.

    Raises PolicyError, with the number to change, where no allowance above zero exists.
    """
    draw = Draw(vocabulary)
    if policy.baseline is not None:
        return _baseline(policy, tokens[WHOLE], draw, total)
    groups: list[GroupPromise] = []
    views = view_names(policy)
    weights = _weights(policy, tokens)
    for name, members in views.items():
        first = policy.groups[members[0]]
        weight = weights[name]
        entities = tuple(e for m in members for e in policy.groups[m].entities)
        event, why = _event(policy, name, first, weight, tokens[name], draw)
        epsilon = accounting.epsilon(event, policy.delta, draw)
        groups.append(
            GroupPromise(name, members, entities, first.method, weight, event, epsilon, why)
        )
    for name, group in policy.groups.items():
        if not group.method.private_view:
            why = "placeholders only" if group.method is Method.REDACT else "kept as it is"
            groups.append(
                GroupPromise(name, (name,), group.entities, group.method, 0.0, None, 0.0, why)
            )
    whole = accounting.all_groups_epsilon(
        [g.event for g in groups if g.event is not None],
        policy.delta,
        draw,
        combine=policy.combine,
        scope=policy.scope,
        total=total,
    )
    return Promise(tuple(groups), policy.delta, draw, whole, total)


def _weights(policy: Policy, tokens: Mapping[str, int]) -> dict[str, float]:
    """Every view's share in the mean.

    Which groups have a span is part of the skeleton, so where every budget is an `epsilon`
    and no weight is given, the groups that have one share the mean among themselves: the
    same ε then buys more text. Under a `beta` (or clip, or range) the weight stays 1/m, as
    the per-token number alone would otherwise promise less.
    """
    own = {n: policy.weight_of(m[0]) for n, m in view_names(policy).items()}
    private = policy.private_groups.values()
    present = [n for n in own if tokens[n] > 0]
    shared = policy.mode == "groups" and policy.scope == "document" and policy.combine == "mean"
    if shared and present and all(g.epsilon is not None and g.weight is None for g in private):
        own |= dict.fromkeys(present, 1.0 / len(present))
    return own


def _baseline(policy: Policy, count: int, draw: Draw, total: int | None) -> Promise:
    """One promise for the whole document against any other: comparisons only (THEORY §7)."""
    rule = policy.baseline
    assert rule is not None
    if rule.mix_weight is not None:
        # every q(y) lies between (1−λ)/V and λ + (1−λ)/V: pure ε per token
        step = math.log1p((draw.tokens - 1) * rule.mix_weight) - math.log1p(-rule.mix_weight)
        event: AnyEvent = accounting.Pure(step, count)
    else:
        event = accounting.Range(2 * float(rule.window or 0) / policy.decoding.temperature, 1.0, count)
    epsilon = accounting.epsilon(event, policy.delta, draw)
    entities = tuple(e for g in policy.groups.values() for e in g.entities)
    group = GroupPromise(
        WHOLE, tuple(policy.groups), entities, rule.method, 1.0, event, epsilon, "comparison only"
    )
    return Promise((group,), policy.delta, draw, epsilon, total)


def _event(
    policy: Policy, name: str, group: Group, weight: float, count: int, draw: Draw
) -> tuple[AnyEvent, str]:
    """The group's event, and a sentence on its order."""
    replaced = policy.neighbours == "replace"
    if group.method is Method.DP_FUSION:
        if group.beta is not None:
            order = float(group.order)
            if replaced:
                event = calibrate.two_hop_from_beta(group.beta, order, weight, count)
            else:
                event = accounting.OrderCap(order, order * group.beta, weight, count)
            return event, "order from the policy"
        return _fusion_from_epsilon(policy, name, group, weight, count, draw)
    width = group.range if group.clip is None else 2 * group.clip / policy.decoding.temperature
    if width is not None:
        return accounting.Range(width, weight, count, replaced), "every order"
    return _range_from_epsilon(policy, name, group, weight, count, draw)


def _fusion_from_epsilon(
    policy: Policy, name: str, group: Group, weight: float, count: int, draw: Draw
) -> tuple[AnyEvent, str]:
    wished, delta = float(group.epsilon), policy.delta
    adaptive, replaced = group.spending == "adaptive", policy.neighbours == "replace"
    if wished == 0 or count == 0:
        order = 2.0 if group.order == "auto" else float(group.order)
        if adaptive and replaced:
            return accounting.TwoHopFilter(order, 0.0, 0.0, count), "nothing to spend"
        if adaptive:
            return accounting.Filter(order, 0.0, count), "nothing to spend"
        if replaced:
            return accounting.TwoHopCap(order, 0.0, 0.0, weight, count), "nothing to spend"
        return accounting.OrderCap(order, 0.0, weight, count), "nothing to spend"
    try:
        if group.order == "auto":
            order = calibrate.best_order(wished, delta, count, weight, draw, adaptive=adaptive)
            why = f"order {order:g} chosen from epsilon, delta, T and the weight"
        else:
            order, why = float(group.order), "order from the policy"
        if adaptive and replaced:
            return calibrate.two_hop_filter(wished, delta, count, order, draw), why
        if adaptive:
            return calibrate.order_filter(wished, delta, count, order, draw), why
        if replaced:
            return calibrate.two_hop_cap(wished, delta, count, weight, order, draw), why
        return calibrate.order_cap(wished, delta, count, weight, order, draw), why
    except calibrate.BudgetTooSmall as small:
        raise _hopeless(policy, name, wished, small) from None


def _range_from_epsilon(
    policy: Policy, name: str, group: Group, weight: float, count: int, draw: Draw
) -> tuple[AnyEvent, str]:
    wished, delta = float(group.epsilon), policy.delta
    replaced = policy.neighbours == "replace"
    adaptive = group.spending == "adaptive"
    if wished == 0 or count == 0:
        if adaptive:
            return accounting.RangeFilter(0.0, count, replaced), "nothing to spend"
        return accounting.Range(0.0, weight, count, replaced), "nothing to spend"
    try:
        if adaptive:
            event: AnyEvent = calibrate.range_filter(wished, delta, count, draw, replaced=replaced)
        else:
            event = calibrate.range_event(wished, delta, count, weight, draw, replaced=replaced)
    except calibrate.BudgetTooSmall as small:
        raise _hopeless(policy, name, wished, small) from None
    return event, "every order"


def _hopeless(
    policy: Policy, name: str, wished: float, small: calibrate.BudgetTooSmall
) -> PolicyError:
    at = f" at order {small.order:g}" if small.order is not None else ""
    least = accounting.decimal_up(small.floor, 2)
    way = "use order: auto, or " if small.order is not None else ""
    return PolicyError(
        f"epsilon {wished:g} cannot be had{at} with delta {policy.delta:g}: the conversion "
        f"alone costs {least}",
        next_step=f"{way}raise epsilon above {least}, raise delta, or use method redact",
        place=f"groups.{name}.epsilon",
    )
