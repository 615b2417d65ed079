"""Any token-classification model of the Hugging Face kind, by folder: `use: [hf:FOLDER]`.

The folder holds config.json with `id2label`, tokenizer.json and an ONNX export of the
model; it runs where Rampart runs, without torch. `optimum-cli export onnx --model NAME
--task token-classification FOLDER` writes such a folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dpredact.errors import PolicyError
from dpredact.policy import entities
from dpredact.tagging import onnx_ner, windows
from dpredact.tagging.interface import Span, Tagging

if TYPE_CHECKING:
    from dpredact.policy import TaggerSettings

# Labels of public models beside those that `policy.entities` knows; "" is left out.
LABELS: dict[str, str] = {
    "PER": "PERSON",
    "GIVENNAME": "PERSON",
    "GIVEN_NAME": "PERSON",
    "FIRSTNAME": "PERSON",
    "LASTNAME": "PERSON",
    "SURNAME": "PERSON",
    "NAME": "PERSON",
    "PATIENT": "PERSON",
    "STAFF": "PERSON",
    "DOCTOR": "PERSON",
    "HOSP": "ORG",
    "HOSPITAL": "ORG",
    "COMPANY": "ORG",
    "PATORG": "ORG",
    "CITY": "LOCATION",
    "STATE": "LOCATION",
    "COUNTRY": "LOCATION",
    "STREET": "ADDRESS",
    "STREET_ADDRESS": "ADDRESS",
    "BUILDINGNUM": "ADDRESS",
    "ZIP": "ADDRESS",
    "ZIPCODE": "ADDRESS",
    "DATETIME": "DATE",
    "DATEOFBIRTH": "DATE",
    "TELEPHONENUM": "PHONE",
    "SOCIALNUM": "NATIONAL_ID",
    "IDCARDNUM": "NATIONAL_ID",
    "TAXNUM": "TAX_ID",
    "DRIVERLICENSENUM": "LICENSE",
    "ACCOUNTNUM": "ACCOUNT",
    "CREDITCARDNUMBER": "CREDIT_CARD",
    "PASSWORD": "SECRET",
    "OTHERPHI": "MISC",
    "EVENT": "MISC",
    "O": "",
    "CARDINAL": "",
    "ORDINAL": "",
}


def entity_of(label: str) -> str | None:
    """Our entity for `B-PER` or `PER`; "" if it is left out, None if nobody mapped it."""
    name = label.partition("-")[2] if label[:2] in ("B-", "I-", "E-", "S-", "L-", "U-") else label
    name = name.upper()
    if name in LABELS:
        return LABELS[name]
    try:
        return entities.canonical(name)
    except KeyError:
        return None


class HfTagger:
    """A `Tagger` that runs one such model. The owner chose it, so any language is read."""

    name = "hf"

    def __init__(self, encoder: onnx_ner.Encoder, columns: dict[str, list[int]]) -> None:
        self._encoder = encoder
        self._columns = columns

    def tag(self, text: str) -> Tagging:
        """Spans in offsets of `text`. Never raises because of the text."""
        found: list[Span] = []
        for window in windows.cut(text, onnx_ner.CHUNK, 1_000):
            found += self._read(text[window.start : window.end], window.start)
        pieces = (piece for span in found for piece in windows.by_line(text, span))
        return Tagging(tuple(windows.join(pieces)))

    def _read(self, part: str, offset: int) -> Iterator[Span]:
        reading = self._encoder.read(part)
        for entity, indices in self._columns.items():
            scores = reading.probabilities[:, indices].sum(axis=1)
            for start, end, score in onnx_ner.runs(part, reading, scores, 0.5):
                yield Span(start + offset, end + offset, entity, score, (self.name,))


def columns(labels: list[str]) -> dict[str, list[int]]:
    """Entity -> columns of the model's output. PolicyError for a label nobody mapped."""
    out: dict[str, list[int]] = {}
    for index, label in enumerate(labels):
        entity = entity_of(label)
        if entity is None:
            raise PolicyError(
                f"the model reports the label {label}, which no group can name",
                next_step="rename the label in the model's config.json to an entity of the policy",
                place="tagger.use",
            )
        if entity:
            out.setdefault(entity, []).append(index)
    return out


def load(settings: TaggerSettings, folder: str = "") -> HfTagger:
    """The model in `folder`; nothing is downloaded.

    PolicyError without a folder or with an unknown label, ModelError without an ONNX file.
    """
    if not folder or not Path(folder).is_dir():
        raise PolicyError(
            "hf needs the folder of a model",
            next_step="write hf:FOLDER in tagger.use",
            place="tagger.use",
        )
    encoder = onnx_ner.Encoder(Path(folder))
    return HfTagger(encoder, columns(encoder.labels))
