"""Blocks the network in a test's Python process, and writes down every attempt.

Python imports a module of this name at start when its folder is on PYTHONPATH, so the
processes that tests start are blocked as well. Unix sockets and this machine are allowed.
"""

import os
import socket

LOG = "DPREDACT_TEST_NETWORK_LOG"
LOCAL = ("127.", "::1", "localhost")


class NetworkBlocked(OSError):
    """A test tried to leave this machine."""


def _refuse(target):
    log = os.environ.get(LOG)
    if log:
        with open(log, "a", encoding="utf-8") as stream:
            stream.write(f"{target}\n")
    raise NetworkBlocked(f"the network is blocked in tests: {target}")


def _local(host):
    return host in ("", None) or str(host).startswith(LOCAL)


def block():
    """Patch sockets and name look-ups. Doing it twice changes nothing."""
    if getattr(socket.socket, "dpredact_blocked", False):
        return
    look_up = socket.getaddrinfo

    class Blocked(socket.socket):
        dpredact_blocked = True

        def connect(self, address):
            if self.family != getattr(socket, "AF_UNIX", None) and not _local(address[0]):
                _refuse(address)
            return super().connect(address)

        def connect_ex(self, address):
            if self.family != getattr(socket, "AF_UNIX", None) and not _local(address[0]):
                _refuse(address)
            return super().connect_ex(address)

        def sendto(self, data, *rest):
            if self.family != getattr(socket, "AF_UNIX", None) and not _local(rest[-1][0]):
                _refuse(rest[-1])
            return super().sendto(data, *rest)

    def getaddrinfo(host, *args, **kwargs):
        if not _local(host if not isinstance(host, bytes) else host.decode()):
            _refuse(host)
        return look_up(host, *args, **kwargs)

    socket.socket = Blocked
    socket.getaddrinfo = getaddrinfo


if os.environ.get(LOG):
    block()
