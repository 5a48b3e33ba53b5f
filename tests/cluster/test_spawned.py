from __future__ import annotations

import json
import os
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from p2pdp.cluster import spawned
from p2pdp.cluster.layout import Packing
from p2pdp.cluster.processes import Events
from p2pdp.cluster.spawned import BRIEF_BYTES_MAX, brief, spawn
from p2pdp.core.addresses import Address
from p2pdp.core.errors import NotReady
from tests.support.finished_runs import finished

ADDRESSES = {-1: Address("127.0.0.1", 1), 0: Address("127.0.0.1", 2)}


def test_a_brief_says_where_everything_is_and_leaves_no_file(tmp_path: Path) -> None:
    with brief(tmp_path, Packing(3), ADDRESSES) as number:
        for _ in range(2):  # everybody reads it from the beginning
            told = json.loads(os.pread(number, BRIEF_BYTES_MAX, 0))
            assert told == {
                "folder": str(tmp_path),
                "nodes_per_process": 3,
                "addresses": [[-1, ["127.0.0.1", 1]], [0, ["127.0.0.1", 2]]],
                "provided": None,
            }
        assert list(tmp_path.iterdir()) == []


def test_a_command_line_holds_numbers_only(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(os, "posix_spawn", lambda *given, **_more: seen.append(given) or 77)
    ends = [end for _ in range(2) for end in os.pipe()]
    try:
        assert spawn(4, ends[0], ends[1], ends[2], ends[3:]) == 77
        ((program, command, environment),) = seen
        assert command[0] == program
        assert command[1:3] == ["-m", "p2pdp.cluster.spawned"]
        assert [int(word) for word in command[3:]] == [4, *ends]
        assert environment["OPENBLAS_NUM_THREADS"] == "1"
        assert not any(map(os.get_inheritable, ends))
        assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    finally:
        for end in ends:
            os.close(end)


def test_no_process_more_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "posix_spawn", full)
    reading, writing = os.pipe()
    with pytest.raises(NotReady, match="Resource temporarily unavailable"):
        spawn(0, reading, writing, reading, [])
    assert not os.get_inheritable(reading)
    os.close(reading)
    os.close(writing)


async def test_a_fresh_interpreter_knows_what_it_must_and_ends_where_nothing_is_left_to_do(tmp_path: Path) -> None:
    job = await finished(tmp_path / "run")
    assert run_one(job.folder) == (0, [])


def test_what_is_wrong_with_a_folder_is_told_as_by_a_fork(tmp_path: Path) -> None:
    code, events = run_one(tmp_path)
    assert code == 2
    ((kind, process, text),) = [(event["event"], event["process"], event["text"]) for event in events]
    assert (kind, process) == ("failed", 0)
    assert "is not the folder of a live run" in text


def run_one(folder: Path) -> tuple[int, list[dict[str, Any]]]:
    events, lifeline = Events(), os.pipe()
    with brief(folder, Packing(), ADDRESSES) as number, socket.create_server(("127.0.0.1", 0)) as bound:
        child = spawn(0, number, events.writing, lifeline[0], [bound.fileno()])
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    told = events.read()
    events.close()
    for end in lifeline:
        os.close(end)
    return code, told


def test_the_module_is_what_the_command_line_names() -> None:
    assert spawned.__name__ == "p2pdp.cluster.spawned"
