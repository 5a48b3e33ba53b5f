"""What the containers' scripts decide before p2pdp itself is asked."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploy.containers import bootstrap, health
from p2pdp.core.errors import UsageError


@contextmanager
def listening(*, answers: bool) -> Iterator[int]:
    """A process that ends connections, or one that hangs."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def end_connections() -> None:
            while True:
                try:
                    server.accept()[0].close()
                except OSError:
                    return

        if answers:
            threading.Thread(target=end_connections, daemon=True).start()
        yield int(server.getsockname()[1])
        server.shutdown(socket.SHUT_RDWR)


def test_a_process_that_ends_connections_is_well_and_one_that_hangs_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "TIMEOUT_S", 0.2)
    with listening(answers=True) as port:
        assert health.hangs_up(port)
    with listening(answers=False) as port, pytest.raises(TimeoutError):
        health.hangs_up(port)
    with pytest.raises(ConnectionRefusedError):
        health.hangs_up(port)


def test_a_connection_to_a_port_is_seen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not health.is_connected_to(port)
        with socket.create_connection(("127.0.0.1", port)):
            assert health.is_connected_to(port)


def test_a_node_without_a_token_is_well_and_a_dead_one_is_not() -> None:
    assert not Path("/data/own.token").exists()
    assert health.main("node") == 0
    assert health.main("bootstrap") == 1


@pytest.mark.parametrize(("text", "nodes"), [("", None), ("1", 1), ("50", 50)])
def test_the_number_of_nodes_may_be_left_open(text: str, nodes: int | None) -> None:
    assert bootstrap.expected(text) == nodes


@pytest.mark.parametrize("text", ["0", "-1", "eight", "1.5"])
def test_what_is_no_number_of_nodes_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="P2PDP_NODES"):
        bootstrap.expected(text)


def test_a_node_is_given_its_own_password_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bootstrap, "RUN", tmp_path)
    monkeypatch.setattr(bootstrap, "LOGINS", tmp_path)
    assert bootstrap.files_of(1) is None, "there is no token yet"
    (tmp_path / "tokens").mkdir()
    (tmp_path / "tokens" / "0001.token").write_text("mine")
    assert bootstrap.files_of(1) == {"own.token": "mine"}
    monkeypatch.setattr(bootstrap, "BROKER", "broker")
    (tmp_path / "passwords").write_text("bootstrap:a\nnode-0000:b\nnode-0001:c\nnode-0011:d\n")
    (tmp_path / "ca.pem").write_text("authority")
    assert bootstrap.files_of(1) == {"own.token": "mine", "password": "node-0001:c\n", "ca.pem": "authority"}
