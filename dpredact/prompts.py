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


# Close to what small instruction-tuned models were taught; larger ones follow it as well.
REWRITE = Instruction(
    system=(
        "You're an AI assistant for text re-writing. Rewrite the input text to make it clearer "
        "and easier to read while keeping every detail."
    ),
    before="",
    after="",
)

SPANS = Instruction(
    system=(
        "You're an AI assistant for text re-writing. Rewrite the input text so that nobody can be "
        "recognised: use a vaguer phrase instead of each name, place and date, such as \"a man\", "
        "\"a northern town\" or \"the mid-1990s\"."
    ),
    before="",
    after="",
)

PLACEHOLDER_NOTES = {
    "label": " Copy words in square brackets, such as [PERSON], as they are.",
    "token": " Underscores stand for words that were left out.",
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
    system = instruction.system + PLACEHOLDER_NOTES[placeholder]
    user = f"{instruction.before}{_DOCUMENT}{instruction.after}"
    rendered = open_turn(model, system, user)
    if rendered is None:  # a model without a chat template
        rendered = f"{system}\n\nInput text:\n{user}\n\nRewritten text:\n"
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
        # generates (a thinking tag): the template knows open turns. Else take the cut one,
        # also where what it adds ends the turn that it opened.
        more = opened.rstrip().removeprefix(upto.rstrip())
        knows = upto.rstrip() and opened.rstrip().startswith(upto.rstrip())
        return opened if knows and not model.eos & {*model.encode_markup(more)} else upto
    raise ModelError(
        "the chat template of this model accepts neither a system nor a user turn",
        next_step="use an instruction-tuned model with a chat template for conversations",
    )
