"""Other languages: what English name finders say is cut down to what can be a name."""

from __future__ import annotations

import pytest

from dpredact.tagging import language
from dpredact.tagging.abroad import Abroad
from dpredact.tagging.interface import Span

SPANISH = (
    "El paciente Aurelio Brennwald fue ingresado en el hospital por una neumonía. La presencia de hematuria "
    "no era nueva para el paciente, y Ambos estudios que se hicieron no la explican, según ambos informes."
)


def cores(text: str, words: str, entity: str = "PERSON", home: str = "en") -> list[str]:
    at = text.index(words)
    span = Span(at, at + len(words), entity, 0.9, ("spacy",))
    return [text[s.start : s.end] for s in Abroad(text, home).cores(span)]


def test_only_capitalised_words_stay() -> None:
    assert cores(SPANISH, "El paciente Aurelio Brennwald fue") == ["Aurelio Brennwald"]
    assert cores(SPANISH, "La presencia de hematuria") == []


def test_words_that_the_text_writes_small_are_no_names() -> None:
    assert cores(SPANISH, "Ambos") == []


def test_labels_are_no_names() -> None:
    text = "Fecha de nacimiento: el 3 de marzo\nEl informe dice que la paciente se encuentra bien y no ha vuelto."
    assert cores(text, "Fecha") == []


def test_ties_inside_a_name_stay() -> None:
    text = SPANISH + " La Sra. Odalys de la Torre no ha dicho que se encuentre mal desde hace dos años."
    assert cores(text, "Odalys de la Torre no") == ["Odalys de la Torre"]


def test_english_is_left_alone() -> None:
    text = "The presence of the chair was noted by all of them, and it was not moved from there again."
    assert cores(text, "presence of the chair", "ORG") == ["presence of the chair"]


def test_the_settings_decide_where_the_text_does_not_tell() -> None:
    assert cores("Buena evolución", "Buena evolución") == ["Buena evolución"]
    assert cores("Buena evolución", "Buena evolución", home="es") == ["Buena"]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("en", "The chair was not there when they came back from the meeting."),
        ("es", SPANISH),
        ("fr", "Le patient est arrivé avec sa mère, mais il ne nous a pas dit où elle est née ni pour qui elle travaille."),
        ("de", "Der Patient kam gestern mit seiner Frau und hat uns nicht gesagt, wo sie sich jetzt auf die Sache vorbereitet."),
        ("da", "Han kom i går med sin kone og sagde ikke, hvor de bor, men det er ikke noget nyt for os."),
        (None, "Brennwald 12"),
        ("other", "Он живёт в Москве и работает в больнице."),
    ],
)
def test_languages_are_told_by_their_function_words(code: str | None, text: str) -> None:
    assert language.guess(text) == code
