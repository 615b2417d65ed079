"""Complaints that people had about other tools, end to end through `rewrite` with the preset
`redact`: the values are gone, and every byte outside them stands where it stood."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from dpredact import certificate
from dpredact.cli.main import main
from dpredact.jobs import journal

REDACT = Path(__file__).parent.parent / "configs" / "redact.yaml"

# name, content, what must be gone, what must stay
CASES = [
    ("table.csv", 'Id,Name,Note\n1,Odalys,This line is about Odalys\n2,Tovin,"Said ""no"", then left"\n',
     ["Odalys", "Tovin"], ["Id,Name,Note\n", '"Said ""no"", then left"\n']),
    ("page.html", "<p>A&E note: <b>Odalys</b>&nbsp;Brennwald<br>seen by "
     '<a href="mailto:tovin@example.com">Dr Maraq</a></p>',
     ["Odalys", "Brennwald", "tovin@example.com", "Maraq"], ["<p>A&E note: <b>", "<br>seen by"]),
    ("key.txt", "key:\n-----BEGIN PRIVATE KEY-----\nMIIBVAIBADANBgkq\n-----END PRIVATE KEY-----\nend",
     ["MIIBVAIBADANBgkq"], ["key:\n", "\nend"]),
    ("zero.txt", "mail odalys@\u200bexample.com or 219\u200c-09-9999", ["odalys", "9999"], ["mail ", " or "]),
    ("wide.txt", "perrin\uff20example.com and \u043edalys@example.com", ["perrin", "dalys"], [" and "]),
    ("percent.txt", "link ?u=odalys%40example.com&x=1", ["odalys"], ["link ?u=", "&x=1"]),
    ("marks.txt", "Zoe\u0308 Brennwa\u0308ld   und  Rene\u0301 Maraq kamen.", ["Brennw", "Zo", "\u0308"], ["   und  ", " kamen."]),
    ("crlf.txt", "Call 202-555-0143.\r\n\r\nThanks\r\n", ["0143"], ["Call ", ".\r\n\r\nThanks\r\n"]),
]  # fmt: skip


@pytest.fixture(autouse=True)
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(journal.VARIABLE, str(tmp_path / ".state"))
    return tmp_path


def rewrite(*args: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(["rewrite", *args, "-o", "out"])
    return int(caught.value.code or 0)


def stands_around(before: str, after: str) -> bool:
    """Is `after` the text `before` with stretches replaced by labels? In HTML the label of a
    value that lies over a tag stands in its first part, and the other parts are empty."""
    pieces = re.split(r"\[[A-Z]+\]|(?<=</b>)(?=<br>)", after)
    pattern = ".+?".join(re.escape(p) for p in pieces)
    return re.fullmatch(pattern, before, re.DOTALL) is not None


def test_complaints(room: Path) -> None:
    (room / "in").mkdir()
    for name, text, _, _ in CASES:
        (room / "in" / name).write_bytes(text.encode())
    assert rewrite("in", "--policy", str(REDACT)) == 0
    for name, text, gone, stay in CASES:
        data = (room / "out" / name).read_bytes()
        after = data.decode()
        assert [w for w in gone if w in after] == [], name
        assert [w for w in stay if w not in after] == [], name
        assert stands_around(text, after), name
        assert certificate.verify(data, json.loads((room / f"out/{name}.cert.json").read_text())).ok


def test_over_a_million_characters_with_a_value_at_the_end(room: Path) -> None:
    """With the rules alone: the models take minutes for so much text."""
    rules = re.sub(r"(?m)^tagger:.*$", "tagger: {use: [patterns]}", REDACT.read_text())
    (room / "rules.yaml").write_text(rules)
    filler = "The committee met again and nothing was decided about the road. " * 19_000
    (room / "long.txt").write_text(f"{filler}202-555-0143\n")
    assert rewrite("long.txt", "--policy", "rules.yaml") == 0
    assert (room / "out/long.txt").read_text() == f"{filler}[PHONE]\n"


def test_a_value_where_no_edit_reaches_stops_the_file(room: Path) -> None:
    """A class name is no text to rewrite; with a private word in it the file stays here."""
    page = '<p class="{}">Ask Tilda Brackenbury (tilda@example.com).</p>'
    (room / "a.html").write_text(page.format("brackenbury"))
    (room / "b.html").write_text(page.format("plain"))
    assert rewrite("a.html", "b.html", "--policy", str(REDACT)) == 3
    written = sorted(p.name for p in (room / "out").glob("*.html*"))
    assert written == ["b.html", "b.html.cert.json"]
    (job,) = (room / "out").glob("job.json")
    assert "still stood in text that was kept (PERSON)" in job.read_text()
