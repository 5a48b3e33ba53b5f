from __future__ import annotations

from collections.abc import Mapping
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from p2pdp.files.spec import parse_spec, spec_to_toml
from p2pdp.report.participants import sayable
from p2pdp.runs import outlook
from p2pdp.runs.outlook import answer, in_advance, planner, told
from tests.support.launched import complete
from tests.support.runs import ring

if TYPE_CHECKING:
    import pytest

WAIT_S = 240.0
TEXT = complete(4, 40)


def rows(found: Mapping[str, Any], name: str = "costs") -> dict[str, Any]:
    return {row["observer"]: row["epsilon"] for row in found[name]}


def test_bounds_are_those_of_the_participants_edition() -> None:
    spec = parse_spec(TEXT, None)
    found = answer({"spec": spec_to_toml(spec), "n": 4})
    run = planner(spec)(4)
    result = in_advance(run)
    claims, _ = sayable(run, result.claims, result.refusals, (), readable=False)
    best = min(claim.epsilon_max or 0.0 for claim in claims if claim.observer == "node" and claim.bound)
    assert rows(found)["node"] == best
    assert {"node", "curator", "public", "network"} <= rows(found).keys()
    assert "token" in found["words"]


def test_where_somebody_is_out_no_bound_counts_that_assumes_nobody_is() -> None:
    found = answer({"spec": TEXT, "n": 4})
    calm, out = rows(found), rows(found, "costs_if_out")
    assert calm.keys() == out.keys()
    assert out["node"] == "inf" != calm["node"]


def test_skeletons_that_the_curator_could_read_are_spoken_of() -> None:
    assert "skeleton" in answer({"spec": TEXT, "n": 4})["costs_note"]
    sealed = f'{TEXT}\n[audit]\nkey = "{"09" * 32}"\n'
    assert answer({"spec": sealed, "n": 4})["costs_note"] == ""


def test_another_process_works_it_out_and_says_why_it_cannot() -> None:
    known: SimpleQueue[dict[str, Any]] = SimpleQueue()
    with told(parse_spec(TEXT, None), lambda **found: known.put(found)) as begin:
        begin(4)
        begin(3)
        first, second = known.get(timeout=WAIT_S), known.get(timeout=WAIT_S)
    assert rows(first) == rows(answer({"spec": TEXT, "n": 4}))
    assert rows(second) == rows(answer({"spec": TEXT, "n": 3}))
    many = ring(4, 2, "").replace("nodes = 4", "nodes = 900000")
    with told(parse_spec(many, None), lambda **found: known.put(found)) as begin:
        begin(900_000)
        refused = known.get(timeout=WAIT_S)
    assert refused["costs"] is None
    assert "No bound is known in advance" in refused["costs_note"]


def test_what_is_not_there_at_the_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlook, "spec_to_toml", lambda _spec: complete(4, 4_000_000))
    known: list[dict[str, Any]] = []
    with told(parse_spec(TEXT, None), lambda **found: known.append(found)) as begin:
        begin(4)
    assert [found["costs"] for found in known] == [None]
