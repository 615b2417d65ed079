"""Patterns over drawn text alone: no e-mail address or card number may stand in a result.

It reads the output and the policy, nothing private, so it is post-processing and free
(THEORY §5), whatever it finds.
"""

from __future__ import annotations

from functools import lru_cache

from dpredact.policy import Policy, TaggerSettings
from dpredact.policy.entities import FAMILY_OF
from dpredact.tagging.interface import Tagger


@lru_cache(maxsize=8)
def _patterns(regions: tuple[str, ...], language: str) -> Tagger:
    from dpredact.tagging import build

    return build(
        TaggerSettings(use=("patterns",), propagate=False, regions=regions, language=language)
    )


def scrub(text: str, policy: Policy) -> str:
    """`text` with every match of `scrub_output` replaced by its label, such as [EMAIL]."""
    if not policy.scrub_output:
        return text
    tagger = _patterns(policy.tagger.regions, policy.tagger.language)
    out, at = [], 0
    for span in sorted(tagger.tag(text).spans):
        family = FAMILY_OF.get(span.entity, span.entity)
        name = next((n for n in (family, span.entity) if n in policy.scrub_output), None)
        if name is not None and span.start >= at:
            out += [text[at : span.start], f"[{name}]"]
            at = span.end
    return "".join([*out, text[at:]])
