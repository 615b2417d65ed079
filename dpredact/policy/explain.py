"""A policy in sentences: what it does, what it promises, and what it does not cover."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpredact.policy.model import Group, Length, Method, Policy


@dataclass(frozen=True)
class Section:
    """A heading and its sentences; all of it is public."""

    title: str
    sentences: tuple[str, ...]


def explain(policy: Policy) -> tuple[Section, ...]:
    """The policy, read aloud. Totals that need the length of a document are `plan`'s."""
    return (
        Section("What happens to a document", tuple(_process(policy))),
        Section("What is promised, group by group", tuple(_groups(policy))),
        Section("What the promise means", tuple(_meaning(policy))),
        Section("What is not covered", tuple(_not_covered(policy))),
    )


def _process(policy: Policy) -> list[str]:
    out = []
    private = list(policy.private_groups)
    if not private:
        out.append("No language model is used: tagged words are replaced, the rest is kept.")
    elif policy.scope == "document":
        out.append(
            f"The model {policy.model} writes the whole document anew, from a public view in "
            f"which every private word is replaced by {_placeholder(policy)}."
        )
    else:
        out.append(
            "Text that is not tagged is kept to the byte; the model "
            f"{policy.model} writes only the replacements."
        )
    if private and policy.mode == "groups":
        out.append(
            f"It also reads one private view for each of {_names(private)}, which shows that "
            "group's words and no other's."
        )
    elif private:
        out.append(f"It also reads one private view, which shows the words of {_names(private)}.")
    if private and policy.scope == "document":
        out.append(f"At most {_length(policy)}; all of them are paid for, drawn or not.")
    out.append(f"A document in which nothing was tagged is {_UNTAGGED[policy.untagged]}")
    return out


_UNTAGGED = {
    "refuse": "refused: nothing found may mean that nothing was understood.",
    "copy": "copied as it is.",
    "rewrite": "rewritten all the same.",
}


def _groups(policy: Policy) -> list[str]:
    if policy.baseline is not None:
        return [
            f"{policy.baseline.method} is here for comparison only. It compares the whole "
            "document with any other document, knows no groups, and is not meant for releases."
        ]
    return [f"{name} ({_kinds(g)}): {_promise(policy, g)}" for name, g in policy.groups.items()]


def _promise(policy: Policy, group: Group) -> str:
    if group.method is Method.REDACT:
        return f"never shown to the model, replaced by {_placeholder(policy)}; ε = 0."
    if group.method is Method.KEEP:
        return "kept as it is; NO promise for these words."
    share = (
        " (one budget for all groups with a private view)"
        if policy.mode == "single" and len(policy.private_groups) > 1
        else ""
    )
    if group.epsilon is not None:
        other = "as without" if policy.neighbours == "remove" else "as with any others instead"
        paced = ", spent where it is needed" if group.spending == "adaptive" else ""
        return (
            f"{group.method}, ε = {group.epsilon:g} at δ = {policy.delta:g} for the whole "
            f"document{share}{paced}: whatever comes out is at most {_factor(group.epsilon)} "
            f"times as likely with these words {other}, except with probability about δ."
        )
    if group.beta is not None:
        assert group.order != "auto"
        return (
            f"{group.method}, at most {group.order * group.beta:g} per token (order "
            f"{group.order:g} × beta {group.beta:g}){share}; `dpredact plan` adds it up over "
            "the document."
        )
    bound = f"clip {group.clip:g}" if group.clip is not None else f"range {group.range:g}"
    return f"{group.method}, {bound} per token{share}; `dpredact plan` adds it up."


def _meaning(policy: Policy) -> list[str]:
    if not policy.private_groups:
        return [
            "Nothing that is written depends on the tagged words, so there is nothing to weigh: "
            "two documents that differ only in these words give the same text."
        ]
    out = [
        {
            "remove": "The document is compared with one in which the group's words are not "
            "shown to the model at all.",
            "replace": "The document is compared with one that has any other words in the same "
            "places.",
        }[policy.neighbours]
        + " The certificate bounds how much anyone can learn from the text about which of the "
        "two it came from, whatever they know already."
    ]
    private = policy.private_groups
    if len(private) == 1 or policy.mode == "single":
        out.append("One number covers all protected words of the document together.")
    else:
        out.append(
            f"Each number is about one group. A person whose data lie in several of {_names(list(private))} "
            "is covered by the number for all groups together, which is larger; `dpredact plan` "
            "prints it and the certificate states it."
        )
    worst = max((g.epsilon or 0.0 for g in private.values()), default=0.0)
    if worst > 10:
        out.append(f"ε = {worst:g} is a weak promise; below 10 is usual, 1 is strong.")
    if policy.delta > 1e-4:
        out.append(
            f"δ = {policy.delta:g} is large: it should be far below one divided by the number "
            "of people whose documents are released."
        )
    return out


def _not_covered(policy: Policy) -> list[str]:
    out = [
        "Words that no tagger found. They are treated as public text: look at `dpredact tags`.",
        "The text around the tagged words, and where they stood and of which group they were. "
        "A story can name a person without saying a name.",
    ]
    if policy.placeholder == "token":
        out.append("How many tokens each tagged span has.")
    if policy.placeholder == "surrogate":
        out.append("Which mentions are of the same person or thing.")
    kept = [n for n, g in policy.groups.items() if g.method is Method.KEEP]
    if kept:
        out.append(f"The words of {_names(kept)}, which are kept.")
    out.append(
        "Further releases. Rewriting the same document again, or another about the same "
        "person, adds to what is spent."
    )
    out.append("How long the work took, and whether a document was refused for its format.")
    if policy.private_groups:
        out.append("Truth: the text is written by a model, and may say what is not so.")
    return out


def _placeholder(policy: Policy) -> str:
    return {
        "label": "its group's label, such as [PERSON]",
        "token": "one `_` for each of its tokens",
        "surrogate": "an invented value",
    }[policy.placeholder]


def _length(policy: Policy) -> str:
    if isinstance(policy.max_new_tokens, Length):
        length = policy.max_new_tokens
        return (
            f"{length.ratio:g} tokens are drawn for each token of the public view, and never "
            f"more than {length.at_most}"
        )
    return f"{policy.max_new_tokens} tokens are drawn"


def _kinds(group: Group) -> str:
    return ", ".join(e.lower() if len(e) > 4 else e for e in group.entities)


def _names(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _factor(epsilon: float) -> str:
    """e^epsilon, rounded up so that the sentence never promises more than it holds."""
    if epsilon > 30:
        return f"e^{epsilon:g}"
    value = math.exp(epsilon)
    return f"{math.ceil(value):,}" if value >= 10 else f"{math.ceil(value * 10) / 10:g}"
