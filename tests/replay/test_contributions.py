from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.auditor.exact import ceiling
from p2pdp.core.draws import Mechanism
from p2pdp.core.values import LinearForm, Source, in_order
from p2pdp.replay.contributions import Noise, noise_of

SCALES = (2.0, 3.0, 5.0, 7.0)
DRAWS = {0: [Mechanism("gaussian", scale) for scale in SCALES]}


def value(number: int = 0) -> LinearForm:
    return LinearForm.of(Source("input", 0, number))


def draw(number: int) -> LinearForm:
    return LinearForm.of(Source("draw", 0, number))


def found(*seen: LinearForm, unit: float = 1.0) -> Noise:
    return noise_of(seen, in_order(seen), DRAWS, {}, unit).get(0, Noise())


def gaussians(*scales: float) -> tuple[Mechanism, ...]:
    return tuple(Mechanism("gaussian", scale) for scale in scales)


def test_a_draw_that_goes_wherever_the_contribution_goes_protects_it() -> None:
    noised = value() + draw(0)
    foreign = LinearForm.of(Source("input", 1, 0))
    assert found(noised, noised * 0.5 + foreign, foreign - noised).own == [gaussians(2.0)]


def test_a_draw_that_was_never_added_protects_nothing() -> None:
    assert found(value()).own == [()]


@pytest.mark.parametrize("bare", [value(), value() + draw(0) * 0.5, value() - draw(0)])
def test_a_contribution_that_once_went_without_its_draw_is_not_protected(bare: LinearForm) -> None:
    assert ceiling(found(value() + draw(0), bare).own) == math.inf


def test_a_scaled_draw_counts_with_its_ratio() -> None:
    assert found((value() + draw(1) * 0.25) * 7.0).own == [gaussians(0.75)]
    assert found(value() + draw(1) * 0.25, unit=0.25).own == [gaussians(3.0)]


def test_noise_of_messages_is_told_apart() -> None:
    noised = value() + draw(0)
    told = found(noised + draw(1), noised + draw(2))
    assert told.own == [gaussians(2.0)]
    assert told.others == set(gaussians(3.0, 5.0))
    assert found(noised + draw(1)).own == [gaussians(2.0, 3.0)], "what was seen once has all noise around it"


def test_the_same_value_contributed_again_needs_noise_again() -> None:
    first = value() + draw(0)
    second = first + value() + draw(1)
    assert found(first, second).own == [gaussians(2.0), gaussians(3.0)]
    assert found(first, first + value()).own == [gaussians(2.0), ()]


def test_contributions_seen_together_only_share_their_noise() -> None:
    """x0 + x1 + z tells as much of both as its one noise allows, when both change by as much."""
    own = found(value(0) + value(1) + draw(2)).own
    assert len(own) == 2
    assert ceiling(own) == pytest.approx(4 / 25, rel=1e-12)
    each = found(value(0) + draw(0) + value(1) + draw(1)).own
    assert each == [gaussians(2.0), gaussians(3.0)]


def test_a_report_has_the_draws_that_it_was_made_with() -> None:
    report = Source("report", 0, 3)
    answer = (Mechanism("randomized_response", 0.3, 3),)
    form = LinearForm.of(report)
    assert noise_of([form], [form], DRAWS, {report: answer}, 1.0)[0].own == [answer]
    assert noise_of([form], [form], DRAWS, {}, 1.0)[0].own == [()]


def test_what_nobody_saw_is_no_contribution() -> None:
    assert noise_of([], [], DRAWS, {}, 1.0) == {}


@given(st.integers(0, 2**32), st.integers(1, 6))
def test_no_ceiling_is_below_what_all_forms_tell(seed: int, count: int) -> None:
    """Random forms of one user, everything else known: mu^2 by the pseudo-inverse is at most the ceiling."""
    random = np.random.default_rng(seed)
    noised = [value(0) + draw(0), value(1) + draw(1) * 2.0, value(0) + draw(2)]
    seen = []
    for _ in range(count):
        chosen = [noised[int(at)] * float(random.integers(1, 4)) for at in random.integers(0, 3, 2)]
        seen.append(chosen[0] + chosen[1] + (draw(3) if random.random() < 0.3 else value(0) * 0.0))
    rows = [form.expand() for form in seen]
    matrix = np.array([[row.get(Source("draw", 0, at), 0.0) * SCALES[at] for at in range(4)] for row in rows])
    moved = np.array([[row.get(Source("input", 0, at), 0.0) for at in range(2)] for row in rows])
    gram = moved.T @ np.linalg.pinv(matrix @ matrix.T, rcond=1e-10, hermitian=True) @ moved
    limit = ceiling(found(*seen).own)
    assert limit == math.inf or gram.sum() <= limit * (1 + 1e-6)
