"""A written file read again: drawn passages are taken out, all else is there to be searched."""

import io

import docx
import pytest

from dpredact.documents import Edit, Kind, read, undrawn
from dpredact.errors import DocumentError

LONG = "She came on Monday with Odalys and nobody was there to open the door for her."


def word_file():
    made = docx.Document()
    made.add_paragraph(LONG)
    made.add_table(1, 1).cell(0, 0).text = "Tovin"
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


FILES = {
    "a.txt": f"{LONG}\r\n\r\nTovin".encode(),
    "a.md": f"- {LONG}\n\n[Tovin](x)\n".encode(),
    "a.csv": f"x,{LONG}\nTovin,y\n".encode(),
    "a.json": f'{{"a": "{LONG}", "Tovin": "Tovin"}}'.encode(),
    "a.html": f"<p>{LONG}</p><table><td class=Tovin>Tovin</table>".encode(),
    "a.eml": f"Subject: Tovin\n\n{LONG}\n".encode(),
    "a.docx": word_file(),
}


@pytest.mark.parametrize("name", FILES)
def test_drawn_words_are_taken_out_and_kept_words_stay(name):
    document = read(FILES[name], name)
    block = next(b for b in document.blocks if b.kind is Kind.PROSE)
    drawn = 'New "words" & <things>,\nwith Odalys in them,\tdrawn by chance.'
    again = read(document.render([Edit(block.start, block.end, drawn)]), name)
    assert "Odalys" in again.everything()
    rest = undrawn(again, [drawn])
    assert "Odalys" not in rest and "drawn by chance" not in rest
    assert "Tovin" in rest
    assert "Odalys" in undrawn(again, [])
    with pytest.raises(DocumentError):
        undrawn(again, ["this was never written"])


def test_the_same_passage_twice_is_taken_out_twice():
    again = read(b"one two\n\nkept\n\none two\n\none two", "a.txt")
    assert undrawn(again, ["one  two", "one\ntwo", ""]).split() == ["kept", "one", "two"]
