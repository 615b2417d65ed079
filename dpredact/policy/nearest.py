"""Did you mean …? The known word that a wrong one resembles."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: object, known: Iterable[str]) -> str | None:
    """The known word closest to `word` (case aside), or None if none is close.

    Messages repeat this word instead of the wrong one: what stands in a file that was
    passed by mistake may be private.
    """
    if not isinstance(word, str) or len(word) > 60:
        return None
    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower().strip(), by_lower, n=1, cutoff=0.6)
    return by_lower[close[0]] if close else None


def hint(word: object, known: Iterable[str]) -> str:
    """`; did you mean X?`, or the whole list of known words."""
    known = [str(name) for name in known]
    close = nearest(word, known)
    return f"; did you mean `{close}`?" if close else f"; known: {', '.join(known)}"
