from __future__ import annotations

import os
import resource
import socket
from contextlib import closing

import pytest

from p2pdp.cluster.sockets import (
    FILES_SPARE,
    Sockets,
    allow_open_files,
    connections_of_node,
    connections_of_roles,
)
from p2pdp.core.errors import NotReady
from p2pdp.transports.tcp import STRANGERS_MAX
from p2pdp.transports.ways import WAYS_MAX


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def test_everybody_can_be_called_before_anybody_is_up() -> None:
    with closing(Sockets(3)) as sockets:
        assert len(sockets.addresses) == len(set(sockets.addresses)) == 4
        assert {host for host, _ in sockets.addresses} == {"127.0.0.1"}
        for address in sockets.addresses:
            socket.create_connection(address, timeout=10).close()
        descriptors = list(sockets.descriptors)
    assert not any(map(is_open, descriptors))


@pytest.mark.parametrize("mine", [(0,), (2, 3), (4,), (0, 2, 4), (), (0, 1, 2, 3, 4)])
def test_a_child_keeps_its_own_and_no_file_of_somebody_else_is_closed(mine: tuple[int, ...]) -> None:
    """Files that were opened in between are left alone."""
    sockets = Sockets(1)
    between, other = os.pipe()
    more = Sockets(2)
    sockets.descriptors += more.descriptors
    kept = [sockets.descriptors[number] for number in mine]
    sockets.keep_only(kept)
    assert [descriptor for descriptor in sockets.descriptors if is_open(descriptor)] == kept
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


def test_connections_are_shared_out_so_that_files_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (20_000, 20_000))
    assert connections_of_node(1) == WAYS_MAX
    assert 100 * connections_of_node(100) < 20_000 - FILES_SPARE
    assert connections_of_roles(4000) == (4000, 4000 + STRANGERS_MAX)
    assert connections_of_roles(3)[0] == WAYS_MAX
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (1024, 1024))
    ways, strangers = connections_of_roles(4000)
    assert 2 * ways + strangers <= 1024 - FILES_SPARE
    assert connections_of_node(4000) == 2


def test_a_port_that_cannot_be_had_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(socket, "socket", none_left)
    with pytest.raises(NotReady, match="Too many open files"):
        Sockets(1)
