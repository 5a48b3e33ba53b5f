from __future__ import annotations

import os
import resource
import socket
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.cluster.layout import ONE_EACH, Layout, Packing, Sockets, allow_open_files, layout_of
from p2pdp.core.errors import NotReady, UsageError
from p2pdp.files.spec import parse_spec
from p2pdp.transports.contract import ROLES
from p2pdp.transports.tcp.kind import FILES_SPARE
from tests.support.local import SPEC

MEMORY = SPEC.replace("seed = 1", 'seed = 1\ntransport = "memory"')


@given(slots=st.integers(1, 400), each=st.integers(1, 90), alone=st.booleans())
def test_every_user_is_in_one_process(slots: int, each: int, alone: bool) -> None:
    layout = Layout(slots, each, alone)
    assert [user for process in layout.processes for user in layout.users(process)] == list(range(slots))
    assert layout.processes[0] == ROLES
    assert all(1 <= len(layout.users(process)) <= each for process in layout.processes[1:])
    assert [slot for process in layout.processes for slot in layout.slots_of(process)] == [ROLES, *range(slots)]


def test_processes_have_names_that_people_understand() -> None:
    assert [Layout(3).name(process) for process in (ROLES, 2)] == ["bootstrap and curator", "node 2"]
    packed = Layout(12, 5)
    assert packed.name(0) == "the process of nodes 0 to 4"
    assert packed.name(2) == "the process of nodes 10 to 11"
    assert Layout(6, 5).name(1) == "node 5"
    assert Layout(3, in_one_process=True).name(ROLES) == "the process of all nodes"


def test_a_spec_says_whether_all_are_in_one_process(tmp_path: Path) -> None:
    assert layout_of(parse_spec(SPEC, tmp_path), Packing(2)) == Layout(3, 2)
    assert layout_of(parse_spec(MEMORY, tmp_path), ONE_EACH).processes == (ROLES,)
    with pytest.raises(UsageError, match="one process anyway"):
        layout_of(parse_spec(MEMORY, tmp_path), Packing(2))


@pytest.mark.parametrize("count", [0, -1])
def test_a_process_holds_at_least_one_node(count: int) -> None:
    with pytest.raises(UsageError, match=f"--nodes-per-process {count}: must be at least 1"):
        Packing(count)
    with pytest.raises(UsageError, match="whole number"):
        Packing("a")  # type: ignore[arg-type]


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
    more = Sockets((2, 3, 4))
    sockets.descriptors |= more.descriptors
    sockets.blocks += more.blocks
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
    assert limits["now"] == (256, 9000)  # enough
    allow_open_files(10_000, 500)
    assert limits["now"] == (4 * 500 + FILES_SPARE, 9000)
    allow_open_files(10_000, 10)
    assert limits["now"] == (4 * 1000 + FILES_SPARE, 9000)
    allow_open_files(1000, 1)
    assert limits["now"] == (4000 + FILES_SPARE, 9000)
    allow_open_files(10, 2)
    assert limits["now"] == (4000 + FILES_SPARE, 9000)
    allow_open_files(100, 1000)
    assert limits["now"] == (4000 + FILES_SPARE, 9000)
    allow_open_files(10_000, 1)
    assert limits["now"] == (9000, 9000)


def test_a_port_that_cannot_be_had_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(socket, "socket", none_left)
    with pytest.raises(NotReady, match="Too many open files"):
        Sockets((0,))
