"""Over real sockets: what is no request, who is slow, who is too many, and a fuzzer against the description."""

from __future__ import annotations

import json
import re
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup

from p2pdp.core.errors import UsageError
from p2pdp.core.happenings import happening
from p2pdp.report.page.markup import Markup
from p2pdp.web import server
from p2pdp.web.guard import Guard
from p2pdp.web.openapi import description
from p2pdp.web.page import Subject
from p2pdp.web.responder import Responder
from p2pdp.web.server import CONNECTIONS_MAX, server_tls, serving
from p2pdp.web.status import Status
from tests.support.certificates import write_pair
from tests.support.shown import Shown, first

WAIT_S = 240.0
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
        with suppress(ConnectionError):
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


def test_connections_that_ask_nothing_keep_nobody_out() -> None:
    """The oldest of them ends for each one too many."""
    with served() as where:
        held = [socket.create_connection(where, WAIT_S) for _ in range(2 * CONNECTIONS_MAX)]
        for client in held[1::2]:
            client.sendall(b"GET ")
        for _ in range(5):
            assert body_of(talk(where, get("/healthz"))) == {"status": "ok"}
        for client in held[:CONNECTIONS_MAX]:
            assert read_all(client) == b""
        for client in held:
            client.close()


def test_connections_from_one_address_keep_out_each_other_first() -> None:
    with served() as where:
        first = socket.create_connection(where, WAIT_S, ("127.0.0.2", 0))
        first.sendall(get("/healthz")[:-2])
        flood = [socket.create_connection(where, WAIT_S) for _ in range(2 * CONNECTIONS_MAX)]
        for client in flood[:CONNECTIONS_MAX]:
            assert read_all(client) == b""
        first.sendall(b"\r\n")
        assert body_of(read_all(first)) == {"status": "ok"}
        for client in (first, *flood):
            client.close()


class Long(Shown):
    """Its report is larger than what systems keep of what somebody does not read."""

    BYTES = 64 * 1024 * 1024

    def file(self, name: str) -> bytes | None:
        return bytes(self.BYTES)


def asks_and_does_not_read(where: tuple[str, int]) -> socket.socket:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(WAIT_S)
    client.connect(where)
    client.sendall(get("/auditor/report.html", f"Authorization: Bearer {AUDITORS}"))
    assert client.recv(12) == b"HTTP/1.1 200"
    return client


def test_probes_are_answered_while_slow_readers_have_all_other_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "ANSWERS_MAX", 3)
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 10)
    with served(Long()) as where:
        slow = [asks_and_does_not_read(where) for _ in range(3)]
        for _ in range(3):
            assert talk(where, get("/api/v1/run")).startswith(b"HTTP/1.1 503")
            for probe in ("/healthz", "/readyz", "/metrics"):
                assert re.match(rb"HTTP/1.1 (200|503)", talk(where, get(probe)))
            assert body_of(talk(where, get("/healthz"))) == {"status": "ok"}
        silent = [socket.create_connection(where, WAIT_S) for _ in range(20)]
        assert body_of(talk(where, get("/healthz"))) == {"status": "ok"}
        for client in (*slow, *silent):
            client.close()


def test_slow_readers_make_room_where_all_places_are_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 3)
    with served(Long()) as where:
        slow = [asks_and_does_not_read(where) for _ in range(3)]
        assert body_of(talk(where, get("/healthz"))) == {"status": "ok"}
        assert len(read_all(slow[0])) < Long.BYTES, "the first of them was ended"
        for client in slow:
            client.close()


def test_who_does_not_read_an_answer_loses_the_connection_and_who_reads_slowly_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "SLOW_S", 0.5)
    with served(Long()) as where:
        deaf = asks_and_does_not_read(where)
        read, paused_s = read_slowly(where)
        while read <= Long.BYTES and paused_s > server.SLOW_S / 2:  # this process stood still, or its server did
            read, paused_s = read_slowly(where)
        assert read > Long.BYTES
        assert len(read_all(deaf)) < Long.BYTES
        deaf.close()


def read_slowly(where: tuple[str, int]) -> tuple[int, float]:
    """How much was read in more than four times `SLOW_S`, and the longest time between two pieces of it."""
    with asks_and_does_not_read(where) as slow, suppress(ConnectionError):
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024 * 1024)
        began_s, read, pause = time.monotonic(), 0, threading.Event()
        last_s, paused_s = began_s, 0.0
        while piece := slow.recv(65536):
            now_s = time.monotonic()
            paused_s, last_s, read = max(paused_s, now_s - last_s), now_s, read + len(piece)
            pause.wait(0.0 if now_s > began_s + 2.5 else 0.01)
    return read, max(paused_s, time.monotonic() - last_s)


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


class Stream:
    """A reader of events."""

    def __init__(self, where: tuple[str, int], path: str = "/events") -> None:
        self.client = socket.create_connection(where, WAIT_S)
        self._file, self.status = self.client.makefile("rb"), b""
        with suppress(ConnectionError):
            self.client.sendall(get(path))
            self.status = self._file.readline()
            while self._file.readline().strip():
                pass

    def event(self) -> dict[str, str]:
        """The parts of the next event; beats and lengths of chunks are left out."""
        for line in self._file:
            if line.startswith(b"data: "):
                parts: dict[str, str] = json.loads(line[6:])
                return parts
        return {}

    def close(self) -> None:
        self._file.close()
        self.client.close()


@contextmanager
def fed(shown: Shown) -> Iterator[tuple[tuple[str, int], Callable[[Status], None]]]:
    """Yield where a server is, and what changes the status that it shows."""
    bound = socket.create_server(("127.0.0.1", 0))
    with serving(Responder(shown, Guard(), "1.2"), bound, None) as nudge:

        def change(status: Status) -> None:
            shown.now = status
            nudge()

        yield bound.getsockname()[:2], change


def test_parts_that_changed_are_pushed_and_nothing_where_none_did() -> None:
    status = first()
    shown = Shown(status)
    with fed(shown) as (where, change):
        stream = Stream(where)
        assert stream.status.startswith(b"HTTP/1.1 200")
        whole = stream.event()
        assert {"title", "now", "state-part", "terms-part"} <= whole.keys()
        change(status.counted(0, {"malformed": 7}))  # participants read nothing of faults
        listening = happening("listening", how="h", tokens=3, address="a", folder="f", identity="k")
        status = status.after(listening, 1.0)
        change(status)
        assert stream.event().keys() == {"title", "now", "state-part"}
        change(status.after(happening("enrolling", count=2, of=3), 2.0))
        assert "2 of 3" in stream.event()["now"]
        stream.close()


def opened(where: tuple[str, int]) -> Stream:
    """A stream that was asked for before the time of its connection was over."""
    while not (stream := Stream(where)).status:
        stream.close()
    return stream


def answer_in_time(where: tuple[str, int], asked: bytes) -> bytes:
    while not (answer := talk(where, asked)):
        pass
    return answer


def test_streams_have_places_of_their_own_and_end_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "FEEDS_MAX", 2)
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 1)
    monkeypatch.setattr(server, "CONNECTION_S", 0.5)
    with fed(Shown(first())) as (where, change):
        streams = [opened(where) for _ in range(2)]
        assert all(stream.event() for stream in streams)
        assert answer_in_time(where, get("/events")).startswith(b"HTTP/1.1 503")
        assert talk(where) == b"", "the time of other connections is over"
        assert body_of(answer_in_time(where, get("/healthz"))) == {"status": "ok"}
        change(first().after(happening("enrolling", count=1, of=3), 2.0))
        assert all(stream.event() for stream in streams), "and that of streams is not"
    assert [stream.event() for stream in streams] == [{}, {}], "with the server streams end"
    for stream in streams:
        stream.close()
    monkeypatch.setattr(server, "FEED_S", 0.0)
    with fed(Shown(first())) as (where, _):
        assert talk(where, get("/events")).count(b"data: ") == 1


def test_who_does_not_read_loses_the_place_and_delays_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "FEEDS_MAX", 1)
    monkeypatch.setattr(server, "FEED_SLOW_S", 0.2)
    shown = Shown(first())
    shown.about = Subject(words=Markup("x" * 20_000_000))
    with fed(shown) as (where, change):
        slow = Stream(where)
        change(first())
        for _ in range(1000):
            answer = talk(where, get("/healthz"))
            assert body_of(answer) == {"status": "ok"}
            shown.about = Subject()
            again = Stream(where)
            if again.status.startswith(b"HTTP/1.1 200"):
                break
            again.close()
        assert again.event()
        again.close()
        slow.close()


def test_a_reader_who_leaves_gives_back_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "FEEDS_MAX", 1)
    with fed(Shown(first())) as (where, _):
        gone = Stream(where)
        assert gone.event()
        gone.close()
        for _ in range(1000):
            again = Stream(where)
            if again.status.startswith(b"HTTP/1.1 200"):
                break
            again.close()
        assert again.event()
        again.close()


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
        for first in bare[:10]:
            assert read_all(first) == b"", "those that came first make room"
        for client in bare[10:]:
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
def test_a_fuzzer_finds_that_the_server_does_what_its_description_says(
    shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "FEED_S", 0.0)  # a stream has one event then
    monkeypatch.setattr(server, "FEED_LEAST_S", 0.0)
    with served(shown, TOKEN) as where:
        assert fuzz(where, shown.now.role, 15) >= 4


def test_the_fuzzer_would_find_a_server_that_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "FEED_S", 0.0)

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
