"""Over real sockets: what is no request, who is slow, who is too many, and a fuzzer against the description."""

from __future__ import annotations

import json
import re
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup

from p2pdp.core.errors import UsageError
from p2pdp.web import server
from p2pdp.web.guard import Guard
from p2pdp.web.openapi import description
from p2pdp.web.responder import Responder
from p2pdp.web.server import CONNECTIONS_MAX, server_tls, serving
from tests.support.certificates import write_pair
from tests.support.shown import Shown, first

WAIT_S = 20.0
TOKEN = "0123456789abcdef"
AUDITORS = "fedcba9876543210"


@contextmanager
def served(
    shown: Shown | None = None, token: str | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[tuple[str, int]]:
    bound = socket.create_server(("127.0.0.1", 0))
    with serving(Responder(shown or Shown(), Guard((), token, AUDITORS), "1.2"), bound, tls):
        yield bound.getsockname()[:2]


def talk(where: tuple[str, int], *pieces: bytes) -> bytes:
    """Sends, and reads until the other side has closed."""
    with socket.create_connection(where, WAIT_S) as client:
        for piece in pieces:
            client.sendall(piece)
        return read_all(client)


def read_all(client: socket.socket) -> bytes:
    found = b""
    try:
        while piece := client.recv(65536):
            found += piece
    except ConnectionError:
        pass
    return found


def get(path: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: 127.0.0.1", *headers, "", ""]).encode()


def body_of(answer: bytes) -> dict[str, object]:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"Connection: close" in head
    document: dict[str, object] = json.loads(body)
    return document


def test_a_request_is_answered_in_whichever_pieces_it_comes() -> None:
    with served() as where:
        whole = get("/healthz")
        assert body_of(talk(where, whole)) == {"status": "ok"}
        assert body_of(talk(where, *(bytes([letter]) for letter in whole))) == {"status": "ok"}


def test_a_head_has_no_body_and_one_request_is_all_of_a_connection() -> None:
    with served() as where:
        answer = talk(where, get("/healthz").replace(b"GET", b"HEAD"))
        assert answer.startswith(b"HTTP/1.1 200")
        assert answer.endswith(b"\r\n\r\n")
        assert talk(where, get("/healthz") * 2).count(b"HTTP/1.1") == 1


@pytest.mark.parametrize(
    "wrong",
    [b"nonsense\r\n\r\n", b"GET /healthz HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x00\x05hello\r\n\r\n",
     b"GET  HTTP/1.1\r\n\r\n", get("/healthz", "broken header"), get("/healthz", "X: " + "secret" * 2000),
     get("/" + "secret" * 2000),
     get("/healthz", *(f"X-{number}: 1" for number in range(1000))), get("/healthz", "Content-Length: -1"),
     get("/healthz", "Content-Length: 5", "Transfer-Encoding: chunked")],
)  # fmt: skip
def test_what_is_no_request_gets_a_problem_that_does_not_repeat_it(wrong: bytes) -> None:
    with served() as where:
        answer = talk(where, wrong)
        assert re.match(rb"HTTP/1\.[01] 4", answer), answer
        assert b"application/problem+json" in answer
        assert b"secret" not in answer
        assert body_of(talk(where, get("/healthz"))) == {"status": "ok"}


def test_endless_requests_and_slow_clients_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    with served() as where:
        assert b"200 OK" not in talk(where, b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 50_000)
    monkeypatch.setattr(server, "CONNECTION_S", 0.2)
    with served() as where:
        assert talk(where, b"GET /healthz HTTP/1.1\r\nHost: 127") == b""
        assert talk(where) == b"", "and who says nothing at all"


def test_too_many_connections_do_not_keep_others_out_for_long() -> None:
    with served() as where:
        held = [socket.create_connection(where, WAIT_S) for _ in range(CONNECTIONS_MAX)]
        for client in held[1:]:
            client.sendall(b"GET ")
        assert talk(where) == b"", "one too many is closed at once"
        held[0].close()
        for _ in range(100):
            answer = talk(where, get("/healthz"))
            if answer:
                break
        assert body_of(answer) == {"status": "ok"}
        for client in held:
            client.close()


def test_a_defect_is_answered_without_telling_what_it_was() -> None:
    class Broken(Shown):
        def now_s(self) -> float:
            raise ZeroDivisionError("a secret")

    with served(Broken()) as where:
        answer = talk(where, get("/metrics"))
        assert answer.startswith(b"HTTP/1.1 500")
        assert b"secret" not in answer
        assert body_of(answer)["status"] == 500


def test_whoever_waits_for_a_database_keeps_nobody_else_waiting() -> None:
    entered, let_go = threading.Event(), threading.Event()

    class Slow(Shown):
        def runs(self, limit: int, offset: int) -> dict[str, object]:
            entered.set()
            let_go.wait(WAIT_S)
            return {"runs": [], "total": 0}

    with served(Slow()) as where, socket.create_connection(where, WAIT_S) as client:
        client.sendall(get("/api/v1/runs", f"Authorization: Bearer {AUDITORS}"))
        assert entered.wait(WAIT_S)
        assert body_of(talk(where, get("/healthz"))) == {"status": "ok"}
        let_go.set()
        assert body_of(read_all(client)) == {"runs": [], "total": 0}


def test_no_thread_and_no_socket_is_left() -> None:
    with served() as where:
        assert threads() == 1
        client = socket.create_connection(where, WAIT_S)
    assert read_all(client) == b""
    client.close()
    assert threads() == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(where, WAIT_S)


def threads() -> int:
    return sum(thread.name == "http" for thread in threading.enumerate())


def test_tls_is_spoken_where_there_is_a_certificate(tmp_path: Path) -> None:
    certificate, key = write_pair(tmp_path, "a")
    with served(tls=server_tls(str(certificate), str(key))) as where:
        trusting = ssl.create_default_context(cafile=str(certificate))
        plain = socket.create_connection(where, WAIT_S)
        with trusting.wrap_socket(plain, server_hostname="127.0.0.1") as client:
            client.sendall(get("/healthz"))
            assert body_of(read_all(client)) == {"status": "ok"}
        assert b"HTTP/" not in talk(where, get("/healthz"))


def test_a_handshake_that_never_ends_counts_as_a_connection(tmp_path: Path) -> None:
    certificate, key = write_pair(tmp_path, "a")
    trusting = ssl.create_default_context(cafile=str(certificate))
    with served(tls=server_tls(str(certificate), str(key))) as where:
        bare = [socket.create_connection(where, WAIT_S) for _ in range(CONNECTIONS_MAX + 10)]
        for surplus in bare[CONNECTIONS_MAX:]:
            assert read_all(surplus) == b"", "closed at once"
        for client in bare[:CONNECTIONS_MAX]:
            client.setblocking(False)
            with pytest.raises(BlockingIOError):
                client.recv(1)
        for number, client in enumerate(bare):
            if number % 2:  # these end with a reset, the others in order
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        answer = b""
        for _ in range(100):
            with (
                suppress(OSError),
                socket.create_connection(where, WAIT_S) as plain,
                trusting.wrap_socket(plain, server_hostname="127.0.0.1") as client,
            ):
                client.sendall(get("/healthz"))
                answer = read_all(client)
                break
        assert body_of(answer) == {"status": "ok"}


def test_handshakes_are_cut_off_by_time_and_by_the_end_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = server_tls(*map(str, write_pair(tmp_path, "a")))
    with served(tls=tls) as where:
        client = socket.create_connection(where, WAIT_S)
    assert read_all(client) == b""
    client.close()
    monkeypatch.setattr(server, "CONNECTION_S", 0.2)
    with served(tls=tls) as where:
        assert talk(where) == b""


def fuzz(where: tuple[str, int], role: str, examples: int) -> int:
    """Asks by the description and, where there are parameters, against it; gives how often it asked."""
    schema = schemathesis.openapi.from_dict(description("1.2", whole=role == "bootstrap", topics=["trust", "walks"]))
    schema.config.update(base_url=f"http://127.0.0.1:{where[1]}")
    count = 0

    def ask(case: schemathesis.Case) -> None:
        nonlocal count
        count += 1
        with requests.Session() as session:
            answer = case.call(session=session, allow_redirects=False, headers={"Authorization": f"Bearer {AUDITORS}"})
        case.validate_response(answer, excluded_checks=[not_a_server_error])  # 503 is described, and 500 is not

    with_limits = settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    for found in schema.get_all_operations():
        operation = found.ok()
        modes = schemathesis.GenerationMode
        for mode in (modes.POSITIVE, modes.NEGATIVE) if operation.query else (modes.POSITIVE,):
            with_limits(given(case=operation.as_strategy(generation_mode=mode))(ask))()
    return count


@pytest.mark.parametrize("shown", [Shown(), Shown(first()), Shown(index=False), Shown(first("node"))])
def test_a_fuzzer_finds_that_the_server_does_what_its_description_says(shown: Shown) -> None:
    with served(shown, TOKEN) as where:
        assert fuzz(where, shown.now.role, 15) >= 4


def test_the_fuzzer_would_find_a_server_that_does_not() -> None:
    class Other(Shown):
        def runs(self, limit: int, offset: int) -> dict[str, object]:
            return {"runs": [{"run_id": 7}], "total": "many"}

    with served(Other(), TOKEN) as where, pytest.raises(FailureGroup):
        fuzz(where, "bootstrap", 3)


def test_a_pair_that_belongs_together_is_taken(tmp_path: Path) -> None:
    certificate, key = write_pair(tmp_path, "a")
    server_tls(str(certificate), str(key))


def test_others_are_refused_in_one_sentence(tmp_path: Path) -> None:
    certificate, key = write_pair(tmp_path, "a")
    _, other = write_pair(tmp_path, "b")
    text = tmp_path / "text"
    text.write_text("nothing")
    with pytest.raises(UsageError, match="do not belong together"):
        server_tls(str(certificate), str(other))
    with pytest.raises(UsageError, match="not PEM"):
        server_tls(str(text), str(key))
    with pytest.raises(UsageError, match="No such file"):
        server_tls(str(tmp_path / "absent"), str(key))
