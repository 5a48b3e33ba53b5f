"""Machines with explicit phases: every table is sound, runs walk through all of it, and the guide shows it as it is.

To write the guide's page again: `python -c "from tests.contracts.test_states import write; write()"`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from enum import Enum
from importlib import import_module
from types import ModuleType
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import p2pdp
from p2pdp.core import messages
from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.core.states import after
from p2pdp.core.step import Message
from p2pdp.files.guide import FOLDER, page
from p2pdp.files.spec import load_spec
from p2pdp.protocols.contract import Start
from p2pdp.services import bootstrap, curator
from p2pdp.sim.faults import Crash
from tests.support.fault_worlds import walk, world_of
from tests.support.service_steps import DRAWS
from tests.support.sources import TOP, sources

NAMES: Final = {
    "p2pdp.services.bootstrap": "Bootstrap, once the roster is closed",
    "p2pdp.services.curator": "The curator",
    "p2pdp.protocols.gossip.gossiping": "A user of gossip in rounds",
    "p2pdp.protocols.gossip.pairing": "A user of randomized gossip",
    "p2pdp.protocols.shuffle.shuffling": "A user of network shuffling",
    "p2pdp.protocols.pairwise.masking": "A user of pairwise sums",
}
MODULES: Final = {source.module: source for source in sources("p2pdp") if "TRANSITIONS" in source.text}
MACHINES: Final = sorted(set(MODULES) & set(NAMES), key=list(NAMES).index)
SAMPLES: Final = ("ring_sum", "gossip_average", "gossip_randomized", "gossip_sgd", "shuffle_all", "pairwise_sum")

Table = Mapping[tuple[Enum, Enum], Enum]
Walked = dict[str, set[tuple[Enum, Enum]]]

INTRODUCTION: Final = """\
# Phases of machines

Protocols and services are pure state machines (see [architecture](architecture.md)). Those that pass through phases
have a table of transitions in their module; a change that the table does not have is a bug and raises an error. This
page is made from the tables.
"""


def phases(module: ModuleType) -> list[Enum]:
    return list(module.Phase)


def diagram(table: Table) -> str:
    """One line for each transition, in the order of the table."""
    width = max(len(phase.name) for phase, _ in table)
    changes = max(len(change.name) for _, change in table)
    return "".join(
        f"{phase.name.lower():{width}} ── {change.name.lower():{changes}} ──► {follows.name.lower()}\n"
        for (phase, change), follows in table.items()
    )


def section(name: str) -> str:
    module = import_module(name)
    meanings = [*phases(module), *module.Change]
    rows = "".join(f"| {each.name.lower()} | {type(each).__name__.lower()} | {each.value} |\n" for each in meanings)
    place = f"`{name.removeprefix('p2pdp.').replace('.', '/')}.py`"
    return (
        f"\n## {NAMES[name]}\n\n{place}\n\n```\n{diagram(module.TRANSITIONS)}```\n\n"
        f"| name | | meaning |\n|---|---|---|\n{rows}"
    )


def states() -> str:
    return INTRODUCTION + "".join(map(section, MACHINES))


def write() -> None:
    (FOLDER / "states.md").write_text(states(), "utf-8")


def test_the_guide_shows_the_tables_as_they_are() -> None:
    assert page("states").text == states(), (
        "make it again: python -c 'from tests.contracts.test_states import write; write()'"
    )


def test_every_table_has_its_section() -> None:
    assert set(MODULES) - {"p2pdp.core.states"} == set(NAMES)


@pytest.mark.parametrize("name", MACHINES)
def test_every_phase_is_reached_and_the_last_one_is_left_by_nothing(name: str) -> None:
    module = import_module(name)
    table: Table = module.TRANSITIONS
    first, *_, last = phases(module)
    reached = {first}
    for _ in table:
        reached |= {follows for (phase, _), follows in table.items() if phase in reached}
    assert reached == set(module.Phase)
    assert {change for _, change in table} == set(module.Change)
    assert {phase for phase, _ in table} == set(module.Phase) - {last}


@pytest.mark.parametrize("name", MACHINES)
def test_phases_change_by_the_table_only(name: str) -> None:
    """A phase is set to the first one, or to what follows it by the table."""
    assigned = [
        ast.unparse(node.value)
        for node in MODULES[name].nodes
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).endswith("_phase")
    ]
    first = f"Phase.{phases(import_module(name))[0].name}"
    assert assigned.count(first) == 1
    assert all(text == first or text.startswith("after(TRANSITIONS, self._phase, Change.") for text in assigned)


@pytest.fixture(scope="module")
def walked() -> Walked:
    """All transitions that simulated runs of samples make, by module."""
    found: Walked = {name: set() for name in MACHINES}

    def watching(name: str) -> Callable[..., Enum]:
        def watched(table: Any, phase: Any, change: Any) -> Enum:
            found[name].add((phase, change))
            return after(table, phase, change)

        return watched

    with pytest.MonkeyPatch.context() as patch:
        for name in MACHINES:
            patch.setattr(import_module(name), "after", watching(name))
        for sample in SAMPLES:
            p2pdp.simulate(load_spec(TOP / "deploy/samples" / f"{sample}.toml"))
        for record in (3, 9):  # before it is ready, and after that
            least = walk(4, 200).replace("nodes = 4", "nodes = 4\nmin_live = 4")
            world_of(least, 1, Crash(1, at_record=record, down_s=None)).run_to_end()
    return found


@pytest.mark.parametrize("name", MACHINES)
def test_runs_walk_through_the_whole_table(name: str, walked: Walked) -> None:
    assert walked[name] == set(import_module(name).TRANSITIONS)


PEERS: Final = (BOOTSTRAP, CURATOR, 0, 1, 2)
FIELDS: Final[dict[str, st.SearchStrategy[Any]]] = {
    messages.SILENT: st.tuples(st.sampled_from(PEERS)),
    messages.SPARED: st.tuples(st.sampled_from(PEERS)),
    messages.OUT: st.tuples(st.sampled_from((0, 1, 2)), st.just(b"")),
    messages.SEEN: st.tuples(st.sampled_from(PEERS), st.just([[0, 0, 1]]), st.just([[0, 1]])),
    messages.TOTAL: st.tuples(st.sampled_from((0, 1)), st.just(3)),
    messages.HEAD: st.just((b"head",)),
    messages.RESOLVED: st.tuples(st.just([1]), st.just([[0, 1]])),
    **dict.fromkeys((messages.READY, messages.ALIVE, messages.DONE, messages.OVER, messages.FINISHED), st.just(())),
}
ANYTHING: Final = st.lists(
    st.sampled_from(sorted(FIELDS)).flatmap(
        lambda kind: st.tuples(st.sampled_from(PEERS), st.just(kind), FIELDS[kind], st.floats(0.0, 5.0))
    ),
    max_size=40,
)


def services() -> list[tuple[ModuleType, Any]]:
    starts = (Start(0, 0, 1), Start(1, 1, 1))
    made = bootstrap.Bootstrap(
        3,
        lambda user: [other for other in range(3) if other != user],
        starts,
        needed=1,
        patience_s=4.0,
        ready_timeout_s=10.0,
        sign_exclusion=lambda _: b"",
    )
    return [
        (bootstrap, made),
        (curator, curator.Curator(3, 2, sum, 4.0)),
        (curator, curator.Curator(3, None, sum, 4.0)),
    ]


@given(ANYTHING)
def test_whatever_peers_send_services_go_through_their_phases_one_after_another(
    heard: list[tuple[int, str, tuple[Any, ...], float]],
) -> None:
    for module, machine in services():
        order, now_s = phases(module), 0.0
        steps = [machine.start(now_s, DRAWS)]
        for sender, kind, fields, wait_s in heard:
            now_s += wait_s
            before = order.index(machine._phase)
            if not machine.finished:
                steps.append(machine.receive(sender, Message(kind, fields, 1), now_s, DRAWS))
                steps.append(machine.wake(now_s, DRAWS))
            assert order.index(machine._phase) >= before
        decided = [output.type for step in steps for output in step.outputs if output.recorded]
        assert decided.count(messages.RESULT) <= 1
        assert machine.finished == (machine._phase is order[-1])
