"""Instructions, and the model's own chat template with the assistant turn left open.

The document's text is never part of a string that is read for control tokens: the template
is rendered around a marker, and the ids of the text are put in the marker's place.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpredact.errors import ModelError
from dpredact.lm.interface import LanguageModel

_DOCUMENT = "\u2402DOCUMENT\u2403"  # markers that no template or tokenizer treats specially
_ANSWER = "\u2402ANSWER\u2403"


@dataclass(frozen=True)
class Instruction:
    """What the model is asked to do. `lead` opens the answer and is not part of the output."""

    system: str
    before: str
    after: str
    lead: str = ""


REWRITE = Instruction(
    system=(
        "You rewrite documents. You keep every fact, every paragraph and the order of the text, "
        "and you write nothing but the rewritten document."
    ),
    before="Rewrite the following document in your own words.\n\nDocument:\n",
    after="\n\nWrite the complete rewritten document now, without any remark before or after it.",
    lead="Rewritten document:\n",
)

PLACEHOLDER_NOTES = {
    "label": (
        "\nWords in square brackets such as [PERSON] stand for something that is left out. "
        "Copy a bracket as it is if you do not know what it stands for."
    ),
    "token": "\nUnderscores stand for something that is left out.",
    "surrogate": "",
}


@dataclass(frozen=True)
class Frame:
    """Ids around the document: prefix + document + suffix ends in an open assistant turn."""

    prefix: tuple[int, ...]
    suffix: tuple[int, ...]

    def wrap(self, document: list[int]) -> list[int]:
        return [*self.prefix, *document, *self.suffix]

    def __len__(self) -> int:
        return len(self.prefix) + len(self.suffix)


def frame(model: LanguageModel, instruction: Instruction, placeholder: str) -> Frame:
    """The ids before and after a document for this model and instruction."""
    before = instruction.before
    after = instruction.after + PLACEHOLDER_NOTES[placeholder]
    user = f"{before}{_DOCUMENT}{after}"
    rendered = open_turn(model, instruction.system, user)
    if rendered is None:  # a model without a chat template
        rendered = f"{instruction.system}\n\n{user}\n\n"
    if rendered.count(_DOCUMENT) != 1:
        raise ModelError(
            "the chat template of this model does not put the user's text in exactly once",
            next_step="use a model whose chat template is a plain conversation",
        )
    head, tail = rendered.split(_DOCUMENT)
    return Frame(
        tuple(model.encode_markup(head)), tuple(model.encode_markup(tail + instruction.lead))
    )


def open_turn(model: LanguageModel, system: str, user: str) -> str | None:
    """The prompt up to the first character of the assistant's answer; None without a template.

    A template that does not know the flag for an open turn gets a marked answer instead, and
    the text is cut where the answer starts: some templates would close the turn, and the
    model would answer with nothing.
    """
    talks = [
        [{"role": "system", "content": system}, {"role": "user", "content": user}],
        [{"role": "user", "content": f"{system}\n\n{user}"}],  # no system role (Gemma, Mistral)
    ]
    for talk in talks:
        try:
            opened = model.render(talk, open_turn=True)
            if opened is None:
                return None
            if system not in opened:  # a template that drops the system turn without a word
                continue
        except ValueError:
            continue
        try:
            answered = model.render(
                [*talk, {"role": "assistant", "content": _ANSWER}], open_turn=False
            )
        except ValueError:
            return opened
        if answered is None or answered.count(_ANSWER) != 1:
            return opened
        upto = answered.split(_ANSWER)[0]
        # Equal but for white space or an opening that this template adds only when it
        # generates (a thinking tag): the template knows open turns. Else take the cut one.
        if opened.rstrip().startswith(upto.rstrip()) and upto.rstrip():
            return opened
        return upto
    raise ModelError(
        "the chat template of this model accepts neither a system nor a user turn",
        next_step="use an instruction-tuned model with a chat template for conversations",
    )
