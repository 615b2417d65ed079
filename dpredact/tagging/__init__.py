"""Where the private words are. `build` makes one tagger of all; `tag_document` reads a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpredact.tagging.interface import Span, Tagger, Tagging

if TYPE_CHECKING:
    from dpredact.documents.interface import Document
    from dpredact.policy import Policy, TaggerSettings

__all__ = ["Span", "Tagger", "Tagging", "build", "tag_document"]


def build(
    settings: TaggerSettings, policy: Policy | None = None, *, everything: bool = False
) -> Tagger:
    """One tagger that runs all of `settings.use` and merges what they find.

    With a policy, entities that no group names are left out. Without one, the core families
    are reported, and with `everything` the optional ones too (origins, amounts, works).
    Errors: PolicyError (unknown tagger, region or list), ModelError (a model is missing).
    """
    from dpredact.tagging import combined

    return combined.build(settings, policy, everything)


def tag_document(
    document: Document, settings: TaggerSettings, policy: Policy | None = None
) -> Tagging:
    """All spans of a document, in offsets of `document.text`; none crosses a block border."""
    from dpredact.tagging import combined

    return combined.tag_blocks(build(settings, policy), document)
