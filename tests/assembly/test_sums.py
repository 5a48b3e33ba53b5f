from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from p2pdp.assembly.outcome import Outcome, baselines, difference, estimate_of, truth_of
from p2pdp.core.ids import is_user
from p2pdp.core.messages import TOKEN
from p2pdp.files.data import load_data
from p2pdp.ledger.records import LEDGER_MAGIC, OWN, RECEIVED, SENT, public_message
from p2pdp.mechanisms import gaussian, laplace
from p2pdp.sim.faults import Crash
from tests.support.outcomes import outcome
from tests.support.runs import HISTOGRAM, Run, quiet, ring, run_of, walk

NONE = '[noise]\nmechanism = "none"\n'


def found(run: Run) -> Outcome:
    views = {peer: bytes(process.disk.view) for peer, process in run.world.processes.items()}
    return outcome(run.plan, views, run.world.out)


def rows(run: Run) -> Any:
    return load_data(run.evidence.spec, run.plan.n).user


def visits(run: Run) -> Counter[int]:
    return Counter(
        peer
        for peer, contents in run.contents().items()
        for record in contents.records
        if record.kind in (RECEIVED, OWN) and public_message(record).type == TOKEN
    )


def test_every_visit_is_counted() -> None:
    run = quiet(walk(5, 40, tokens=2))
    seen = found(run)
    assert seen.contributions == 80
    assert {user: sum(values.values()) for user, values in seen.counted.items() if values} == dict(visits(run))
    sent = [one.body for peer in range(5) for one in run.contents()[peer].records if one.kind == SENT]
    assert (
        seen.messages == sum(is_user(body.receiver) for body in sent) == len(sent) - 5 - 2
    )  # who are ready, and totals
    assert 0 < seen.go_s < seen.published_s


def test_a_user_s_values_are_used_in_turn(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a\n" + "".join(f"0.{digit}\n" for digit in range(1, 8)))
    data = f'[data]\nkind = "csv"\npath = "{tmp_path / "rows.csv"}"\nclip = [0.0, 1.0]\n'
    run = run_of(ring(3, 5, data=data, noise=NONE))
    seen = found(run)
    assert seen.counted == {0: {0: 3, 1: 2}, 1: {0: 3, 1: 2}, 2: {0: 2, 1: 2, 2: 1}}
    truth = truth_of(run.plan, seen, rows(run))
    assert truth == pytest.approx(3 * 0.1 + 2 * 0.2 + 3 * 0.3 + 2 * 0.4 + 2 * 0.5 + 2 * 0.6 + 0.7)
    assert estimate_of(run.plan, seen).value == pytest.approx(truth, abs=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        ring(4, 3, noise=NONE),
        walk(4, 30, noise=NONE, tokens=2),
        walk(4, 30, **{**HISTOGRAM, "noise": NONE}),
        walk(4, 30, noise=NONE, data='[data]\nkind = "uniform"\nclip = [0.0, 1.0]\n[task]\nkind = "mean"\n'),
    ],
)
def test_without_noise_the_estimate_is_the_truth(text: str) -> None:
    run = quiet(text)
    seen = found(run)
    estimate = estimate_of(run.plan, seen)
    np.testing.assert_allclose(estimate.value, truth_of(run.plan, seen, rows(run)), atol=1e-5)  # type: ignore[arg-type]
    np.testing.assert_allclose(estimate.standard_error, 0.0)  # type: ignore[arg-type]


def test_noise_keeps_the_error_within_its_standard_error() -> None:
    for seed in range(10):
        run = quiet(walk(4, 30, seed=seed))
        seen = found(run)
        estimate = estimate_of(run.plan, seen)
        error = difference(estimate.value, truth_of(run.plan, seen, rows(run)))
        assert isinstance(error, float)
        assert isinstance(estimate.standard_error, float)
        assert estimate.standard_error == pytest.approx(2.0 * math.sqrt(30), rel=1e-6)
        assert abs(error) < 6 * estimate.standard_error


def test_a_mean_is_divided_by_the_contributions() -> None:
    task = '[data]\nkind = "uniform"\nclip = [0.0, 1.0]\n[task]\nkind = "mean"\n'
    mean, total = quiet(ring(4, 3, data=task)), quiet(ring(4, 3))
    one, other = estimate_of(mean.plan, found(mean)), estimate_of(total.plan, found(total))
    assert isinstance(one.standard_error, float)
    assert isinstance(other.standard_error, float)
    assert one.standard_error == pytest.approx(other.standard_error / 12)


# Somebody was gone round.


@pytest.mark.parametrize("record", [*range(1, 26), 40])
@pytest.mark.parametrize("torn", [None, 3])
def test_what_counts_is_what_reached_the_total(record: int, torn: int | None) -> None:
    """Also where the ledger of who is gone is empty, torn, or ends within an event."""
    run = run_of(walk(4, 20, seed=record, noise=NONE), Crash(peer=2, at_record=record, down_s=None, torn_bytes=torn))
    seen = found(run)
    assert seen.contributions == 20
    assert estimate_of(run.plan, seen).value == pytest.approx(truth_of(run.plan, seen, rows(run)), abs=1e-6)


@pytest.mark.parametrize("data", [b"", LEDGER_MAGIC])
def test_an_empty_ledger_of_who_is_gone_is_no_hindrance(data: bytes) -> None:
    run = run_of(walk(4, 40, noise=NONE), Crash(peer=2, at_record=25, down_s=None))
    assert run.world.out == [2]
    assert visits(run)[2] > 1
    seen = outcome(run.plan, {**run.evidence.views, 2: data}, run.world.out)
    assert seen.contributions == 40
    assert seen.counted[2]
    assert estimate_of(run.plan, seen).value == pytest.approx(truth_of(run.plan, seen, rows(run)), abs=1e-6)


def test_reports_of_a_histogram_are_counted_too() -> None:
    run = run_of(walk(4, 30, **{**HISTOGRAM, "noise": NONE}), Crash(peer=2, at_record=30, down_s=None))
    seen = found(run)
    assert seen.contributions == 30
    assert estimate_of(run.plan, seen).value == truth_of(run.plan, seen, rows(run))
    noised = run_of(walk(4, 30, **HISTOGRAM), Crash(peer=2, at_record=30, down_s=None))
    assert found(noised).contributions == 30


# Baselines.


def test_local_and_central_errors_at_the_same_privacy() -> None:
    run = quiet(ring(4, 3))
    seen = found(run)
    estimate = estimate_of(run.plan, seen)
    mu = gaussian.mu_of_curve(1.0, 1e-5)
    made = baselines(run.plan, seen, estimate, 1.0, 1.0, 1e-5)
    assert made["local"]["standard_error"] == pytest.approx(math.sqrt(12 * 3) / mu)
    assert made["central"]["standard_error"] == pytest.approx(3 / mu)
    for epsilon in (None, 0.0, math.inf):
        made = baselines(run.plan, seen, estimate, 1.0, epsilon, 1e-5)
        assert made == {"local": {"standard_error": None}, "central": {"standard_error": None}}


def test_laplace_and_histogram_baselines() -> None:
    run = quiet(ring(4, 3, noise='[noise]\nmechanism = "laplace"\nsigma = 2.0\n'))
    made = baselines(run.plan, found(run), estimate_of(run.plan, found(run)), 1.0, 1.0, 1e-5)
    scale = laplace.scale_of_epsilon(1.0, 3.0)
    assert made["local"]["standard_error"] == pytest.approx(math.sqrt(2 * 12) * scale)
    assert made["central"]["standard_error"] == pytest.approx(math.sqrt(2) * scale)
    counts = quiet(ring(4, 3, **HISTOGRAM))
    made = baselines(counts.plan, found(counts), estimate_of(counts.plan, found(counts)), None, 1.0, 1e-5)
    assert isinstance(made["local"]["standard_error"], list)
    assert len(made["local"]["standard_error"]) == 3
    by_gaussian = math.sqrt(2) * 3 / gaussian.mu_of_curve(1.0, 1e-5)
    by_laplace = math.sqrt(2) * laplace.scale_of_epsilon(1.0, 6.0)
    assert made["central"]["standard_error"] == pytest.approx(
        [min(by_gaussian, by_laplace, error) for error in made["local"]["standard_error"]]
    )
