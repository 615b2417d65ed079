"""A GLiNER model in a folder as one more tagger (extra `gliner`): `use: [gliner:FOLDER]`.

GLiNER is asked for kinds in words; each stands for one entity. The door for gliner.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpredact.errors import Missing, ModelError, PolicyError
from dpredact.tagging import windows
from dpredact.tagging.interface import Span, Tagging

if TYPE_CHECKING:
    from dpredact.policy import TaggerSettings

WINDOW, OVERLAP = 1_200, 200  # characters: GLiNER drops words beyond its 384

KINDS: dict[str, str] = {
    "person": "PERSON",
    "location": "LOCATION",
    "address": "ADDRESS",
    "organization": "ORG",
    "date": "DATE",
    "age": "AGE",
    "nationality": "DEMOGRAPHIC",
    "profession": "PROFESSION",
    "medical condition": "HEALTH",
    "username": "USERNAME",
    "identification number": "ID",
    "passport number": "PASSPORT",
    "license plate number": "PLATE",
    "phone number": "PHONE",
}


class GlinerTagger:
    """A `Tagger` that asks one GLiNER model. The owner chose it, so any language is read."""

    name = "gliner"

    def __init__(self, model: Any, *, threshold: float = 0.5) -> None:
        self._model = model
        self._threshold = threshold

    def tag(self, text: str) -> Tagging:
        """Spans of all windows, in offsets of `text`. Never raises because of the text."""
        found = []
        for window in windows.cut(text, WINDOW, OVERLAP):
            part = text[window.start : window.end]
            for hit in self._model.predict_entities(part, list(KINDS), threshold=self._threshold):
                start, end = window.start + hit["start"], window.start + hit["end"]
                score = float(hit["score"])
                found.append(Span(start, end, KINDS[hit["label"]], score, (self.name,)))
        return Tagging(tuple(windows.join(found)))


def load(settings: TaggerSettings, folder: str = "") -> GlinerTagger:
    """The model in `folder`; nothing is downloaded.

    PolicyError without a folder, Missing without the extra, ModelError if it cannot be read.
    """
    if not folder or not Path(folder).is_dir():
        raise PolicyError(
            "gliner needs the folder of a model",
            next_step="write gliner:FOLDER in tagger.use",
            place="tagger.use",
        )
    try:
        from gliner import GLiNER
    except ImportError:
        raise Missing("gliner is not installed", next_step="install dpredact[gliner]") from None
    try:
        model = GLiNER.from_pretrained(folder, local_files_only=True)
    except Exception as damage:  # the libraries below raise what they like
        raise ModelError(
            f"the GLiNER model cannot be read ({type(damage).__name__})",
            next_step="name a folder that GLiNER.save_pretrained wrote",
            place=Path(folder).name,
        ) from None
    return GlinerTagger(model, threshold=settings.min_score)
