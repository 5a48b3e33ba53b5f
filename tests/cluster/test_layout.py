from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.cluster.layout import ONE_EACH, Layout, Packing, layout_of
from p2pdp.core.errors import UsageError
from p2pdp.files.spec import parse_spec
from p2pdp.transports.contract import ROLES
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
