from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from p2pdp.core.errors import UsageError, VerificationFailed
from p2pdp.files.data import load_data
from p2pdp.files.spec import parse_spec
from p2pdp.mechanisms.reporting.categories import BinaryReports, KaryReports, UnaryReports
from p2pdp.mechanisms.reporting.contract import Randomizer
from p2pdp.mechanisms.reporting.privunit import UnitReports
from p2pdp.mechanisms.reporting.reals import RealReports
from p2pdp.protocols import protocol
from p2pdp.protocols.run_plan import plan_of_facts
from p2pdp.protocols.shuffle.network import ALL, SINGLE, is_report, randomizer_of, reported_value, slots_for
from p2pdp.tasks.reports import NAME_BYTES, sealed_bytes
from tests.support.shuffle_networks import MEAN, run_of
from tests.support.shuffle_specs import shuffle


def test_facts_make_the_same_plan_without_the_graph() -> None:
    for text in (MEAN, shuffle(9, protocol="single"), shuffle(9, 'kind = "ring"', terms="rounds = 3\ncover = true")):
        run = run_of(text)
        again = plan_of_facts(run.spec, run.facts)
        assert again.plan == run.plan
        assert again.plan.randomizer.report_bytes == run.plan.randomizer.report_bytes
    with pytest.raises(VerificationFailed, match="rounds"):
        plan_of_facts(run.spec, {"n": 9, "dimensions": 1, "sampler": "exact"})


def test_auto_rounds_make_walks_of_any_two_users_alike() -> None:
    """Kappa is at least (1 - eta) / (1 + eta) = 0.82 with eta = 0.1 (guide/accounting.md, section 4)."""
    run = run_of(MEAN.replace("rounds = 4", 'rounds = "auto"'))
    assert run.plan.overlap >= 0.9 / 1.1
    assert run_of(MEAN.replace("rounds = 4", "rounds = 1")).plan.overlap == 0.0
    assert run_of(MEAN.replace("rounds = 4", 'rounds = "mixing"')).plan.rounds < run.plan.rounds


def test_auto_is_refused_on_a_bipartite_graph_unless_reports_may_stay() -> None:
    text = shuffle(6, 'kind = "ring"', terms='rounds = "auto"')
    with pytest.raises(UsageError, match="bipartite"):
        run_of(text)
    assert run_of(text.replace('"auto"', '"auto"\nstay = 0.2')).plan.rounds > 5


@pytest.mark.parametrize("protocol", ["all", "single"])
def test_reports_of_one_length_come_back_as_the_estimate(protocol: str) -> None:
    text = shuffle(200, protocol=protocol).replace('"randomized_response"\nepsilon = 3.0', '"none"')
    run = run_of(text)
    data = load_data(run.spec, 200)
    reports, counts = [], np.zeros(3)
    for user in range(200):
        inputs, values = run.protocol.inputs(run.plan, data.user(user))
        assert run.protocol.inputs_again(run.plan, values)._values == inputs._values  # type: ignore[attr-defined]
        sealed = inputs.sealed_with(lambda text, _seed: text + bytes(48)).sealed(5, (), np.zeros(4, dtype=np.int64))  # type: ignore[attr-defined]
        assert len(sealed) == run.plan.sealed_bytes == sealed_bytes(1)
        reports.append(sealed[NAME_BYTES : NAME_BYTES + 1])
        counts[int(data.user(user).rows[0])] += 1
    published = run.protocol.publish(run.plan, reports)
    assert published[0] == 200
    estimate = run.protocol.estimate(run.plan, published, 200)
    if protocol == "all":
        assert estimate.value == counts.tolist()
        assert estimate.standard_error == [0.0, 0.0, 0.0]
    assert run.protocol.publish(run.plan, []) is None
    assert run.protocol.estimate(run.plan, None, 0).value is None


def test_a_mean_of_bounded_numbers_and_one_of_vectors() -> None:
    run = run_of(MEAN)
    reports = [run.plan.randomizer.report(value, [np.array([0])]) for value in (0.25, 1.75)]
    found = run.protocol.estimate(run.plan, run.protocol.publish(run.plan, reports), 2)
    assert found.value == pytest.approx(1.0, abs=1e-5)
    assert isinstance(found.standard_error, float)
    run = run_of(MEAN, dimensions=3)
    rows: Any = run.plan.randomizer.report(np.array([0.0, 1.0, 2.0]), [np.zeros(3, dtype=np.int64)])
    assert run.protocol.estimate(run.plan, run.protocol.publish(run.plan, [rows]), 1).value == pytest.approx(
        [0, 1, 2], abs=1e-5
    )


def test_bytes_that_are_no_report_are_told_apart() -> None:
    run = run_of(shuffle(4))
    assert is_report(run.plan, bytes([2]))
    assert not is_report(run.plan, bytes([3]))


def test_room_on_an_edge_suffices_but_for_one_run_in_a_million() -> None:
    """Loads of an edge after mixing are Poisson of 1 / degree: their tail beyond the slots, on all edges and rounds."""
    for n, rounds, degree in ((40, 50, 6), (1000, 200, 4), (10, 3, 1)):
        slots, mean = slots_for(n, rounds, degree), 1.0 / degree
        tail = 1.0 - sum(np.exp(-mean) * mean**k / np.prod(np.arange(1, k + 1)) for k in range(slots + 1))
        assert tail * n * degree * rounds <= 1.1e-6
    assert slots_for(1, 1, 0) >= 1


def test_privunit_needs_two_numbers() -> None:
    text = MEAN.replace('"laplace"', '"privunit"').replace('"uniform"\nclip = [0.0, 2.0]', '"unit_mixture"')
    with pytest.raises(UsageError, match="at least 2"):
        run_of(text)
    assert run_of(text, dimensions=5).plan.randomizer.report_bytes == 20


HEAD = """
[run]
protocol = "shuffle.all"
nodes = 8
seed = 1
[graph]
kind = "complete"
[shuffle]
rounds = 3
"""
COUNTS = '[data]\nkind = "categories"\n[task]\nkind = "histogram"\ncategories = 5\n'
MEAN_RANDOMIZERS = '[data]\nkind = "uniform"\nclip = [0.0, 2.0]\n[task]\nkind = "mean"\n'
DIRECTIONS = '[data]\nkind = "unit_mixture"\n[task]\nkind = "mean"\n'


def made(noise: str, rest: str, dimensions: int = 1) -> Randomizer:
    return randomizer_of(parse_spec(f"{HEAD}\n[noise]\n{noise}\n{rest}", None), dimensions)


@pytest.mark.parametrize(
    ("noise", "rest", "dimensions", "kind", "epsilon"),
    [
        ('mechanism = "randomized_response"\nepsilon = 1.5', COUNTS, 1, KaryReports, 1.5),
        ('mechanism = "randomized_response"\nepsilon = 1.5\nencoding = "unary"', COUNTS, 1, UnaryReports, 1.5),
        ('mechanism = "randomized_response"\nepsilon = 1.5\nencoding = "binary"', COUNTS, 1, BinaryReports, 1.5),
        ('mechanism = "none"', COUNTS, 1, KaryReports, math.inf),
        ('mechanism = "laplace"\nepsilon = 1.5', MEAN_RANDOMIZERS, 1, RealReports, 1.5),
        ('mechanism = "laplace"\nepsilon = 1.5', MEAN_RANDOMIZERS, 4, RealReports, 1.5),
        ('mechanism = "none"', MEAN_RANDOMIZERS, 1, RealReports, math.inf),
        ('mechanism = "privunit"\nepsilon = 1.5', DIRECTIONS, 4, UnitReports, 1.5),
    ],
)
def test_the_spec_says_which(noise: str, rest: str, dimensions: int, kind: type[Randomizer], epsilon: float) -> None:
    found = made(noise, rest, dimensions)
    assert type(found) is kind
    assert found.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert found.outputs == (5 if rest is COUNTS else dimensions)


def test_gaussian_noise_by_sigma_or_by_epsilon() -> None:
    assert made('mechanism = "gaussian"\nsigma = 0.5', MEAN_RANDOMIZERS).epsilon is None
    assert made('mechanism = "gaussian"\nepsilon = 1.0\ndelta = 1e-5', MEAN_RANDOMIZERS).epsilon is None


def test_a_user_reports_its_first_row() -> None:
    assert reported_value(KaryReports(5, 1.0), np.array([3.0, 1.0])) == 3
    unit = reported_value(UnitReports(2, 1.0), np.array([[3.0, 4.0], [1.0, 0.0]]))
    np.testing.assert_allclose(unit, [0.6, 0.8])
    real = made('mechanism = "none"', MEAN_RANDOMIZERS)
    np.testing.assert_array_equal(reported_value(real, np.array([0.5, 1.0])), [0.5])


def test_a_row_without_direction_is_refused() -> None:
    with pytest.raises(UsageError, match="direction"):
        reported_value(UnitReports(2, 1.0), np.zeros((1, 2)))


def test_it_is_found_by_its_name_and_is_algorithm_1() -> None:
    assert protocol("shuffle.all") is ALL
    plan = run_of(shuffle(12, protocol="all")).plan
    assert plan.single is False
    assert (plan.dummies[0] > 0.0) is False


def test_it_is_found_by_its_name_and_is_algorithm_2() -> None:
    assert protocol("shuffle.single") is SINGLE
    plan = run_of(shuffle(12, protocol="single")).plan
    assert plan.single is True
    assert (plan.dummies[0] > 0.0) is True
