"""The whole test run works without a network: here it is blocked, and attempts are faults."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

# A busy machine is no fault of the code: pytest's own timeout is what ends a test.
hypothesis.settings.register_profile("busy", deadline=None)
hypothesis.settings.load_profile("busy")

OFFLINE = Path(__file__).parent / "offline"
_log = Path(tempfile.mkdtemp(prefix="dpredact-tests-")) / "network.log"
os.environ["DPREDACT_TEST_NETWORK_LOG"] = str(_log)
os.environ["DPREDACT_STATE"] = str(_log.parent / "state")  # never the state of who runs this
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(OFFLINE), *filter(None, [os.environ.get("PYTHONPATH")])]
)
sys.path.insert(0, str(OFFLINE))
sys.modules.pop("sitecustomize", None)  # the interpreter's own, if it has one
import sitecustomize  # noqa: E402

sitecustomize.block()
sys.path.remove(str(OFFLINE))


@pytest.fixture
def network_attempts() -> Iterator[Path]:
    """The file that holds this test's attempts; a test that wants some empties it."""
    yield _log


@pytest.fixture(autouse=True)
def no_network(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test that tried to reach the network, even if the error was swallowed."""
    _log.unlink(missing_ok=True)
    yield
    tried = _log.read_text(encoding="utf-8") if _log.exists() else ""
    assert not tried, f"this test tried to reach the network: {tried}"


@pytest.fixture(autouse=True)
def no_policy_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy of the person who runs the tests must not decide them."""
    monkeypatch.delenv("DPREDACT_POLICY", raising=False)
