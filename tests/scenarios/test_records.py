"""Runs that protect single rows: what noise costs, crashes, other data, and attacks on one row."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2pdp
from p2pdp.core.errors import Refused
from p2pdp.core.ids import BOOTSTRAP
from p2pdp.files.folder import read_evidence
from p2pdp.files.spec import load_spec, parse_spec, spec_digest, spec_to_toml
from p2pdp.mechanisms import gaussian
from p2pdp.mechanisms.clipping import Bounds, clip
from p2pdp.privacy.shuffle.overlap import overlapped
from p2pdp.protocols.pairwise.analysis.fast import fast_sums
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.protocols.shuffle.analysis.account import of_reports
from p2pdp.runs.prepared import prepare
from p2pdp.sim.faults import Crash, Faults
from p2pdp.sim.trials import Trials
from p2pdp.sim.world import World
from p2pdp.topology.graphs import graph_of_edges
from p2pdp.topology.report_walks.matrix import all_laws, walk_matrix
from p2pdp.topology.report_walks.overlap import overlaps_of_laws
from tests.support.record_runs import GAUSSIAN, NOTHING, ROWS, protecting_records, record_spec

CLINICS = """
[run]
protocol = "{protocol}"
nodes = 5
[graph]
kind = "complete"
[noise]
mechanism = "gaussian"
epsilon = 2.0
delta = 1e-6
[data]
kind = "csv"
path = "rows.csv"
clip = [0.0, 24.0]
[task]
kind = "mean"
[privacy]
delta = 1e-6
unit = "record"
{part}
"""


@pytest.mark.parametrize(
    ("protocol", "part"), [("pairwise.sum", ""), ("gossip.average", "[gossip]\nrounds = 2")], ids=["pairwise", "gossip"]
)
def test_a_consortium_of_five_has_its_mean_to_a_minute(tmp_path: Path, protocol: str, part: str) -> None:
    """Five nodes with 2,000 rows each, hours within [0, 24], epsilon 2 at delta 1e-6."""
    hours = np.random.default_rng(2).normal(8.0, 2.0, 10_000)
    (tmp_path / "rows.csv").write_text("hours\n" + "".join(f"{value:.1f}\n" for value in hours))
    (tmp_path / "spec.toml").write_text(CLINICS.format(protocol=protocol, part=part))
    spec = load_spec(tmp_path / "spec.toml")
    planned = p2pdp.plan(spec)
    assert isinstance(planned.standard_error, float)
    assert planned.standard_error < 0.02
    result = p2pdp.simulate(spec, fast=True)
    found = result.estimate if result.estimate is not None else np.mean([one["value"] for one in result.outputs])
    assert abs(found - np.clip(np.round(hours, 1), 0, 24).mean()) < 6 * planned.standard_error
    of_users = load_spec(tmp_path / "spec.toml", ['privacy.unit="user"'])
    error = p2pdp.plan(of_users).standard_error
    assert isinstance(error, float)
    assert error > 1000 * planned.standard_error  # what hiding a whole clinic takes


@pytest.mark.parametrize("name", protecting_records())
def test_crashes_change_nothing_of_what_is_contributed(name: str, tmp_path: Path) -> None:
    spec = record_spec(tmp_path, name, NOTHING)
    crashes = (
        Crash(1, at_record=5),
        Crash(2, at_record=9, torn_bytes=3),
        Crash(BOOTSTRAP, at_record=4),
        Crash(3, at_s=0.01),
    )
    result = p2pdp.simulate(spec, tmp_path / "run", faults=Faults(crashes=crashes))
    assert result.missing == []
    assert p2pdp.verify(tmp_path / "run").problems == []
    assert read_evidence(tmp_path / "run").roster.entries.rows == ROWS
    if result.estimate is not None:
        np.testing.assert_allclose(result.estimate, result.truth, rtol=1e-6)


@pytest.mark.parametrize("name", ["pairwise.sum", "gossip.average", "gossip.randomized"])
def test_the_mean_is_over_the_rows_of_those_who_are_left(name: str, tmp_path: Path) -> None:
    """User 2, which holds far more rows than the others, is gone before it has said anything."""
    overrides = {"gossip.average": ["gossip.rounds=60"], "gossip.randomized": ["gossip.activations=600"]}.get(name, [])
    spec = record_spec(tmp_path, name, NOTHING, *overrides)
    tables = [[1.0, 2.0], [3.0], [20.0] * 40, [6.0, 7.0, 8.0]]
    given = replace(spec, data=replace(spec.data, kind="own", path=None))
    faults = Faults(crashes=(Crash(2, at_s=0.004, down_s=None),))
    result = p2pdp.simulate(given, tmp_path / "run", data=[np.array(one) for one in tables], faults=faults)
    assert result.missing == [2]
    found = result.estimate if result.estimate is not None else np.mean([one["value"] for one in result.outputs])
    rows = [value for user, own in enumerate(tables) if user != 2 for value in own]
    assert found == pytest.approx(np.mean(rows), rel=1e-3)


def test_other_rows_than_were_stated_are_refused(tmp_path: Path) -> None:
    spec = record_spec(tmp_path, "pairwise.sum")
    stated = plan_run(spec, 4, 1, rows=(2, 2, 3, 2), sampler="seeded")
    world = World(stated, lambda _user: clip([1.0, 2.0], Bounds(0.0, 24.0)), spec_to_toml(spec), spec_digest(spec), 1)
    with pytest.raises(Refused, match=r"3 rows.*2 now"):
        world.run_to_end()


def _moved(spec: Any, low: float, high: float) -> tuple[Any, Any]:
    """Two data sets of a spec that differ in one row of user 2; the others are the same."""
    prepared = prepare(spec)

    def rows(value: float) -> Any:
        def of(user: int) -> Any:
            own = np.array(prepared.rows(user).rows)
            own[-1] = value if user == 2 else own[-1]
            return clip(own, Bounds(0.0, 24.0))

        return of

    return rows(low), rows(high)


def _same(run: RunPlan, rows: Any, _number: int) -> tuple[RunPlan, Any]:
    return run, rows


def test_what_the_curator_sees_tells_of_one_row_as_much_as_is_claimed_and_no_more(tmp_path: Path) -> None:
    """Two data sets that differ in one row: the distance of what is published covers mu, within 5 deviations."""
    spec = record_spec(tmp_path, "pairwise.sum", GAUSSIAN, 'task.kind="sum"')
    prepared = prepare(spec)
    claim = next(one for one in p2pdp.plan(spec).claims if (one.observer, one.method) == ("curator", "exact"))
    count, means, deviation = 1500, [], 0.0
    for seed, rows in enumerate(_moved(spec, 0.0, 24.0)):
        trials = Trials(
            prepared.run, rows, 10_000 * seed, count, True, lambda _n, r=rows: (prepared.run, r), lambda _n: None
        )
        seen = np.array([float(one.published) for one in fast_sums(trials)])
        means.append(seen.mean())
        deviation = max(deviation, seen.std())
    measured = (means[1] - means[0]) / deviation
    exact = 24.0 / (2.0 * math.sqrt(4))  # of all four users' own noise together
    assert abs(measured - exact) < 5.0 * math.sqrt(2.0 / count) + 0.1 * exact
    assert claim.mu_max is not None
    assert claim.mu_max == pytest.approx(24.0 / (2.0 * math.sqrt(3)), rel=1e-5)  # three may be left
    assert gaussian.epsilon_of(1e-5, exact) <= claim.epsilon_max


@pytest.mark.parametrize("spread", [1, 2])
def test_the_curators_bound_for_one_of_several_reports_holds_by_enumeration(spread: int) -> None:
    """A path of three users with (2, 1, 2) reports of two values: all views of the curator, for all data of others."""
    graph, rows, epsilon_0, stay = graph_of_edges(3, [(0, 1), (1, 2)]), (2, 1, 2), 1.0, 0.5
    laws = all_laws(walk_matrix(graph, stay), spread)
    owners = [user for user, count in enumerate(rows) for _ in range(count)]
    truth = math.exp(epsilon_0) / (1.0 + math.exp(epsilon_0))
    kappas = overlaps_of_laws(laws, spread)
    spec = parse_spec(
        '[run]\nprotocol = "shuffle.all"\nnodes = 3\n[graph]\nkind = "path"\n'
        f"[shuffle]\nrounds = {spread}\nstay = {stay}\n"
        f'[noise]\nmechanism = "randomized_response"\nepsilon = {epsilon_0}\n[data]\nkind = "categories"\n'
        '[task]\nkind = "histogram"\ncategories = 2\n[privacy]\ndelta = 0.05\nunit = "record"\n',
        None,
    )
    plan = plan_run(spec, 3, 1, rows=rows, sampler="seeded").plan
    found = of_reports(plan, [np.delete(kappas[user], user) for user in range(3)])

    def view(values: tuple[int, ...]) -> Counter[Any]:
        seen: Counter[Any] = Counter({(): 1.0})
        for report, value in enumerate(values):
            more: Counter[Any] = Counter()
            for before, chance in seen.items():
                for place in range(3):
                    for answer in range(2):
                        kept = truth if answer == value else 1.0 - truth
                        after = tuple(sorted((*before, (place, answer))))
                        more[after] += chance * laws[owners[report]][place] * kept
            seen = more
        return seen

    delta = 0.05
    for user in range(3):
        unit, upper = owners.index(user), overlapped(epsilon_0, found[user], delta, 2)[1]
        for others in product((0, 1), repeat=len(owners) - 1):
            one, other = (view((*others[:unit], value, *others[unit:])) for value in (0, 1))
            for first, second in ((one, other), (other, one)):
                excess = sum(max(0.0, chance - math.exp(upper) * second[seen]) for seen, chance in first.items())
                assert excess <= delta * (1.0 + 1e-9)
