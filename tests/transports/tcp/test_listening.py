from __future__ import annotations

import socket

import pytest

from p2pdp.core.errors import NotReady, UsageError
from p2pdp.transports.tcp.listening import announcer, host_towards, listen_at

EVERYWHERE = "0.0.0.0"  # noqa: S104 - as an owner would write it
HERE = ("127.0.0.1", 9)


def test_a_free_port_is_taken_and_can_be_dialled() -> None:
    with listen_at(("127.0.0.1", 0), "--listen") as bound:
        host, port = bound.getsockname()
        assert host == "127.0.0.1"
        socket.create_connection((host, port)).close()
    listen_at((host, port), "--listen").close()  # at once, although a connection was there


@pytest.mark.parametrize(
    ("place", "error", "says"),
    [
        (("127.0.0.1", None), NotReady, "the port is in use"),
        (("192.0.2.1", 0), NotReady, "no such address"),
        (("no machine", 1), UsageError, "no machine is known"),
    ],
)
def test_where_nobody_can_listen(place: tuple[str, int | None], error: type[Exception], says: str) -> None:
    with listen_at(("127.0.0.1", 0), "x") as taken:
        port = taken.getsockname()[1] if place[1] is None else place[1]
        with pytest.raises(error, match=says) as caught:
            listen_at((place[0], port), "[node] listen")
        assert str(caught.value).startswith(f"[node] listen {place[0]}:{port}: ")


async def test_others_are_told_where_the_socket_is_reached() -> None:
    with listen_at((EVERYWHERE, 0), "x") as everywhere, listen_at(("127.0.0.1", 0), "x") as here:
        ports = everywhere.getsockname()[1], here.getsockname()[1]
        assert await announcer(None, everywhere, HERE)() == f"127.0.0.1:{ports[0]}"
        assert await announcer(None, here, ("192.0.2.1", 9))() == f"127.0.0.1:{ports[1]}"
        assert await announcer("gate.example.org:80", everywhere, HERE)() == "gate.example.org:80"


async def test_there_may_be_no_way() -> None:
    assert await host_towards(("no machine", 1)) is None
    assert await host_towards(HERE) == "127.0.0.1"
