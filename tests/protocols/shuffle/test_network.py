from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2pdp.core.errors import UsageError, VerificationFailed
from p2pdp.files.data import load_data
from p2pdp.protocols.run_plan import plan_of_facts
from p2pdp.protocols.shuffle.network import is_report, slots_for
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
        assert run.protocol.inputs_again(run.plan, values)._value == inputs._value  # type: ignore[attr-defined]
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
