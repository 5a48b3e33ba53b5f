"""How containers that are started alike come to their tokens."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploy.containers.asking import TOKEN, Desk, Seats, ask
from p2pdp.core.errors import NotReady, Refused

CLOCK_S = 1000.0


def seats(place: Path, expected: int | None = None, now_s: Callable[[], float] = lambda: CLOCK_S) -> Seats:
    return Seats(place / "asked.json", expected, 5.0, now_s)


@contextmanager
def desk(known: Seats, files: Callable[[int], dict[str, str] | None] | None = None) -> Iterator[tuple[str, int]]:
    def given(seat: int) -> dict[str, str] | None:
        return None if known.settled() is None else {TOKEN: f"token {seat}"}

    with Desk(("127.0.0.1", 0), known, files or given) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield "127.0.0.1", int(server.server_address[1])
        finally:
            server.shutdown()
            thread.join()


def silent(_text: str) -> None:
    pass


def test_nobody_gets_the_token_of_another_and_everybody_its_own_again(tmp_path: Path) -> None:
    folders = [tmp_path / f"n{number}" for number in range(12)]
    known = seats(tmp_path, len(folders))
    with desk(known) as place, ThreadPoolExecutor(len(folders)) as pool:
        for _ in range(2):  # the second time as if the answer had not been kept
            list(pool.map(lambda folder: ask(place, folder, [TOKEN], silent), folders))
            tokens = [(folder / TOKEN).read_text() for folder in folders]
            assert sorted(tokens) == sorted(f"token {seat}" for seat in range(12))
            if _ == 0:
                first = tokens
        assert tokens == first
        with pytest.raises(Refused, match="no join token"):
            ask(place, tmp_path / "late", [TOKEN], silent)
    assert all((folder / TOKEN).stat().st_mode & 0o777 == 0o600 for folder in folders)
    with desk(seats(tmp_path)) as place:  # bootstrap was started again, and knows who had which
        ask(place, folders[3], [TOKEN], silent)
        assert (folders[3] / TOKEN).read_text() == first[3]


def test_an_answer_is_for_the_key_that_asked(tmp_path: Path) -> None:
    known = seats(tmp_path, 1)
    with desk(known) as place:
        ask(place, tmp_path / "one", [TOKEN], silent)
        (key,) = json.loads((tmp_path / "asked.json").read_text())
        with socket.create_connection(place) as thief:
            thief.sendall(f"p2pdp-token {key}\n".encode())
            said = b"".join(iter(lambda: thief.recv(4096), b""))
    assert said
    assert b"token" not in said


def test_without_a_number_those_count_who_came_before_it_was_quiet(tmp_path: Path) -> None:
    now = [0.0]
    known = seats(tmp_path, None, lambda: now[0])
    assert known.take("a") == 0
    now[0] = 100.0
    assert known.settled() is None, "one alone is no run"
    assert known.take("b") == 1
    now[0] = 104.9
    assert known.settled() is None
    assert known.take("a") == 0, "who asks again is nobody new"
    now[0] = 105.0
    assert known.settled() == 2
    assert known.take("c") is None
    assert seats(tmp_path, 7).settled() == 2, "what is settled stays so"


HELLO = b"p2pdp-token "
STRANGE = (b"", b"\n", b"GET / HTTP/1.1\r\n\r\n", HELLO + b"zz\n", b"\xff" * 200, HELLO + b"0" * 62 + b"\n")


@pytest.mark.parametrize("line", STRANGE)
def test_whoever_says_something_else_is_not_answered(tmp_path: Path, line: bytes) -> None:
    known = seats(tmp_path, 2)
    with desk(known) as place, socket.create_connection(place) as stranger:
        stranger.sendall(line)
        stranger.shutdown(socket.SHUT_WR)
        assert stranger.recv(100) == b""
    assert known.take("a") == 0, "no seat was lost"


def test_what_answers_there_may_be_somebody_else(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, ThreadPoolExecutor(1) as pool:

        def answer() -> None:
            with other.accept()[0] as connection:
                connection.recv(200)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        pool.submit(answer)
        with pytest.raises(NotReady, match="not this project's bootstrap"):
            ask(("127.0.0.1", other.getsockname()[1]), tmp_path, [TOKEN], silent)
    assert not (tmp_path / TOKEN).exists()
