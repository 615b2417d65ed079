"""The block itself: without it, the rest of the run proves nothing about the network."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

OUTSIDE = ("192.0.2.1", 9)  # a documentation address: nothing is there


def test_connections_to_elsewhere_are_refused_and_noted(network_attempts: Path) -> None:
    """connect, connect_ex, datagrams and name look-ups all count."""
    with socket.socket() as outside, socket.socket(type=socket.SOCK_DGRAM) as datagrams:
        for attempt in (
            lambda: outside.connect(OUTSIDE),
            lambda: outside.connect_ex(OUTSIDE),
            lambda: datagrams.sendto(b"x", OUTSIDE),
            lambda: socket.create_connection(("weights.example", 443)),
        ):
            with pytest.raises(OSError, match="blocked in tests"):
                attempt()
    assert len(network_attempts.read_text().splitlines()) == 4
    network_attempts.unlink()


def test_processes_that_tests_start_are_blocked_too(network_attempts: Path) -> None:
    """The commands under test run in processes of their own."""
    code = f"import socket; socket.create_connection({OUTSIDE!r}, timeout=2)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "NetworkBlocked" in done.stderr
    assert network_attempts.exists()
    network_attempts.unlink()


def test_this_machine_is_reachable() -> None:
    """Local services and worker pools keep working."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        with socket.create_connection(server.getsockname(), timeout=2):
            pass
