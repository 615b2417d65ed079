"""Keys, tokens and passwords."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dpredact.tagging.patterns.anchors import anchored
from dpredact.tagging.patterns.interface import Hit, Reading, hits

_BLOCK = re.compile(
    r"-----BEGIN (?P<kind>[A-Z0-9 ]{2,40})-----.*?(?:-----END (?P=kind)-----|\Z)", re.DOTALL
)
_TOKEN = anchored(
    r"""(?<![\w-])(?:
      (?:AKIA|ASIA|AGPA|AIDA|AROA)[0-9A-Z]{16}                  # cloud access key
    | gh[pousr]_[A-Za-z0-9]{30,} | github_pat_\w{40,} | glpat-[\w-]{20,}
    | xox[abeoprs]-[\w-]{10,} | sk-[\w-]{20,} | [sprk]k_(?:live|test)_\w{16,}
    | AIza[\w-]{35} | ya29\.[\w-]{20,} | npm_[A-Za-z0-9]{30,} | pypi-[\w-]{40,} | hf_[A-Za-z0-9]{30,}
    | SG\.[\w-]{16,}\.[\w-]{16,} | eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*   # mail service key, JWT
    | ssh-(?:rsa|ed25519|dss)\ [A-Za-z0-9+/=]{40,}
    )""",
    "akia asia agpa aida aroa ghp gho ghu ghs ghr github glpat- xox sk pk rk aiza ya29. npm pypi- hf sg. eyj ssh-",
    re.VERBOSE,
)
_LABELLED = anchored(
    r"(?i)(?<![^\W_])(?:pass(?:word|wd|phrase|code)|pwd|secret(?:[ _-]?(?:access[ _-]?)?key)?|api[ _-]?key|access[ _-]?(?:key|token)|"
    r"auth[ _-]?token|bearer|client[ _-]?secret|private[ _-]?key|token|pin|passwort|kennwort|"
    r"contrase[ñn]a|mot de passe|adgangskode)[\"']?(?: ?(?:is|was|:=|[:=])| ist| es| est| er)[ \t]?"
    r"[\"'`]?(?P<x>[^\s\"'`,;<>]{4,200})",
    "pass pwd secret api access auth bearer client private token pin kennwort contrase mot_de_passe adgangskode",
)
_IN_LINK = re.compile(r"(?i)\b[a-z][a-z0-9+.-]{1,15}://[^\s/:@]*:(?P<x>[^\s/@]+)@")


def find(reading: Reading) -> Iterator[Hit]:
    text = reading.text
    if "-----BEGIN " in text:
        yield from hits(_BLOCK.finditer(text), "SECRET", 0.99, "key block")
    yield from hits(reading.anchored(_TOKEN), "SECRET", 0.95, "token with a known prefix")
    if "://" in text:
        yield from hits(reading.on_lines(_IN_LINK, "@"), "SECRET", 0.9, "password in a link")
    for match in reading.anchored(_LABELLED):
        start, end = match.span("x")
        while end > start and text[end - 1] in ".!?)]}":
            end -= 1
        words = text[start:end]
        # `password: required` is a sentence, `password: hunter2` is not.
        if end - start >= 4 and not (words.isalpha() and (words.islower() or words.istitle())):
            yield Hit(start, end, "SECRET", 0.8, "secret after a label")
