from __future__ import annotations

import os
import resource
import socket
from contextlib import closing

import pytest

from p2pdp.cluster.sockets import Sockets, allow_open_files
from p2pdp.core.errors import NotReady
from p2pdp.transports.contract import ROLES
from p2pdp.transports.tcp.kind import FILES_SPARE


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def test_everybody_can_be_called_before_anybody_is_up() -> None:
    with closing(Sockets((ROLES, *range(3)))) as sockets:
        assert len(sockets.addresses) == len(set(sockets.addresses.values())) == 4
        assert {host for host, _ in sockets.addresses.values()} == {"127.0.0.1"}
        for address in sockets.addresses.values():
            socket.create_connection(address, timeout=10).close()
        descriptors = list(sockets.descriptors.values())
    assert not any(map(is_open, descriptors))


@pytest.mark.parametrize("mine", [(0,), (2, 3), (4,), (0, 2, 4), (), (0, 1, 2, 3, 4)])
def test_a_child_keeps_its_own_and_no_file_of_somebody_else_is_closed(mine: tuple[int, ...]) -> None:
    """Files that were opened in between are left alone."""
    sockets = Sockets((0, 1))
    between, other = os.pipe()
    sockets.descriptors |= Sockets((2, 3, 4)).descriptors
    kept = [sockets.descriptors[number] for number in mine]
    sockets.keep_only(kept)
    assert [descriptor for descriptor in sockets.descriptors.values() if is_open(descriptor)] == kept
    for descriptor in (between, other, *kept):
        os.close(descriptor)  # raises where it is closed already


def test_as_many_files_may_be_open_as_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"now": (256, 9000)}
    monkeypatch.setattr(resource, "getrlimit", lambda _which: limits["now"])
    monkeypatch.setattr(resource, "setrlimit", lambda _which, limit: limits.update(now=limit))
    allow_open_files(10, 1)
    assert limits["now"][0] == 10 * 3 + FILES_SPARE or limits["now"] == (276, 9000)
    allow_open_files(1000, 1)
    assert limits["now"] == (3000 + FILES_SPARE, 9000)
    allow_open_files(10, 2)
    assert limits["now"] == (3000 + FILES_SPARE, 9000)
    allow_open_files(100, 1000)
    assert limits["now"] == (9000, 9000)


def test_a_port_that_cannot_be_had_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(socket, "socket", none_left)
    with pytest.raises(NotReady, match="Too many open files"):
        Sockets((0,))
