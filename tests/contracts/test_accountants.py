"""What every accountant of exact leaks owes to whoever relies on its numbers.

A public function of the modules in `MODULES` is one, unless it answers with a delta for an epsilon. It is called by
the names of its parameters, whose meaning stands once in `TERMS`: a new accountant made of known terms needs no line
here, and a new term one line. What the auditor makes of their answers is judged in `test_claims.py`; the accountants
that `p2pdp account` names, in `test_theorems.py`.
"""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.mechanisms import gaussian
from p2pdp.privacy import gaussian_curve
from p2pdp.privacy.linear import view as gaussian_view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MODULES = (gaussian_curve, gaussian_view)
ACCOUNTANTS: dict[str, Callable[..., Any]] = {
    f"{module.__name__.rpartition('.')[2]}.{name}": function
    for module in MODULES
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if function.__module__ == module.__name__ and not name.startswith("_")
    if "epsilon" not in inspect.signature(function).parameters
}


@dataclass(frozen=True)
class Term:
    """How much more a larger term tells: 1 more, -1 less, 0 it only names something. `powers` of input and noise."""

    tells: int
    powers: tuple[int, int] = (0, 0)
    marks_absence: bool = False  # NaN stands for what is no pair


TERMS: Final = {
    "delta": Term(-1),
    "mu": Term(1, marks_absence=True),
    "inputs": Term(1, (1, 0)),
    "weight": Term(1, (1, 0)),
    "noise": Term(-1, (0, 1)),
    "deviation": Term(-1, (0, 1)),
    "variance": Term(-1, (0, 2)),
    **dict.fromkeys(("rows", "users", "noise_row", "draw", "input_row", "user", "number"), Term(0)),
}
USERS, ROWS = 4, 5


def parameters(accountant: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(accountant).parameters)


def view(seed: int, users: int = USERS, rows: int = ROWS) -> dict[str, Any]:
    """All terms of one view that every accountant of views can take: rows share no draw, and no weight is negative."""
    random = np.random.default_rng(seed)
    noise_row = np.repeat(np.arange(rows), 2)
    input_row = np.repeat(np.arange(rows), users)
    user = np.tile(np.arange(users), rows)
    deviation, weight = random.uniform(0.5, 2.0, 2 * rows), random.integers(0, 3, rows * users) * 1.0
    noise, inputs = np.zeros((rows, 2 * rows)), np.zeros((rows, users))
    noise[noise_row, np.arange(2 * rows)] = deviation
    inputs[input_row, user] = weight
    return {
        "delta": 10.0 ** random.uniform(-12, -1),
        "mu": 10.0 ** random.uniform(-6, 2, (users, rows)),
        "rows": rows,
        "users": users,
        "noise_row": noise_row,
        "draw": np.arange(2 * rows),
        "deviation": deviation,
        "variance": deviation**2,
        "input_row": input_row,
        "user": user,
        "number": np.zeros(rows * users, dtype=np.int64),
        "weight": weight,
        "noise": noise,
        "inputs": inputs[:, :1],
    }


def answer(accountant: Callable[..., Any], terms: dict[str, Any], **changed: Any) -> Any:
    """As an array, whatever the accountant answers for."""
    return np.asarray(accountant(**{name: {**terms, **changed}[name] for name in parameters(accountant)}))


def telling(accountant: Callable[..., Any], way: int) -> Iterator[str]:
    return (name for name in parameters(accountant) if TERMS[name].tells == way)


@pytest.fixture(params=ACCOUNTANTS)
def accountant(request: pytest.FixtureRequest) -> Callable[..., Any]:
    found: Callable[..., Any] = ACCOUNTANTS[request.param]
    return found


SEEDS = pytest.mark.parametrize("seed", range(8))


def test_the_known_accountants_are_found_and_each_term_has_a_meaning() -> None:
    known = {"gaussian_curve.epsilons_of", "view.disjoint_leaks", "view.general_leaks"}
    assert set(ACCOUNTANTS) >= known
    strange = {(name, term) for name, one in ACCOUNTANTS.items() for term in parameters(one) if term not in TERMS}
    assert strange == set(), "say in TERMS what these mean"


@SEEDS
def test_answers_are_numbers_of_at_least_0(accountant: Callable[..., Any], seed: int) -> None:
    found = answer(accountant, view(seed))
    assert np.all(found >= 0.0)  # which nan is not
    assert np.all(np.isfinite(found))


@SEEDS
def test_it_is_an_upper_end(accountant: Callable[..., Any], seed: int) -> None:
    """Of views no test statistic may see more; of a curve delta at the answer is kept."""
    terms = view(seed)
    found = answer(accountant, terms)
    if "mu" in parameters(accountant):
        for epsilon, mu in zip(found.flat, terms["mu"].flat, strict=True):
            assert gaussian.delta_of(float(epsilon), float(mu)) <= terms["delta"] * (1 + 1e-11)
        return
    inputs = np.zeros((ROWS, USERS))
    inputs[terms["input_row"], terms["user"]] = terms["weight"]
    best = inputs / np.sum(terms["noise"] ** 2, axis=1)[:, None]  # for each user; rows share no draw
    for statistic in (*best.T, *np.random.default_rng(seed).normal(size=(50, ROWS))):
        if not statistic.any():
            continue
        seen = (statistic @ inputs) ** 2 / np.sum((statistic @ terms["noise"]) ** 2)
        assert np.all(seen[: found.size] <= found * (1 + 1e-9))


def test_those_who_answer_for_the_same_view_agree() -> None:
    views = [one for one in ACCOUNTANTS.values() if "rows" in parameters(one)]
    for terms in map(view, range(8)):
        first, *others = (answer(one, terms) for one in views)
        for other in others:
            np.testing.assert_allclose(other, first, rtol=1e-9)


@SEEDS
@pytest.mark.parametrize("factor", [1.001, 1.5, 10.0])
def test_more_tells_no_less_and_more_protection_no_more(
    accountant: Callable[..., Any], factor: float, seed: int
) -> None:
    terms = view(seed)
    before = answer(accountant, terms)
    for way in (1, -1):
        for name in telling(accountant, way):
            larger = terms[name] * factor if name != "delta" else min(terms[name] * factor, 0.999)
            assert np.all(way * (answer(accountant, terms, **{name: larger}) - before) >= -2e-9 * before), name


@SEEDS
def test_it_does_not_depend_on_the_unit_of_the_data(accountant: Callable[..., Any], seed: int) -> None:
    """Inputs and noise in another unit tell the same; twice the inputs, or half the noise, leak four times as much."""
    terms = view(seed)
    before = answer(accountant, terms)
    powers = {name: TERMS[name].powers for name in parameters(accountant)}
    for inputs, noise in ((1e-6, 1e-6), (3.0, 3.0), (1e9, 1e9), (2.0, 1.0), (1.0, 0.5)):
        changed = {name: terms[name] * inputs**one * noise**two for name, (one, two) in powers.items() if one or two}
        ratio = (inputs / noise) ** 2 if changed else 1.0
        np.testing.assert_allclose(answer(accountant, terms, **changed), before * ratio, rtol=1e-9)


@SEEDS
def test_without_protection_all_is_told_and_without_inputs_nothing(accountant: Callable[..., Any], seed: int) -> None:
    terms = view(seed)
    before = answer(accountant, terms)
    scales = {name: terms[name] * 0.0 for name in telling(accountant, -1) if TERMS[name].powers != (0, 0)}
    if scales:
        assert np.all(np.isinf(answer(accountant, terms, **scales)) == (before > 0.0))
    else:
        unbounded = {name: terms[name] * math.inf for name in telling(accountant, 1)}
        assert np.all(np.isinf(answer(accountant, terms, **unbounded)))
    nothing = {name: terms[name] * 0.0 for name in telling(accountant, 1)}
    assert np.all(answer(accountant, terms, **nothing) == 0.0)


@given(seed=st.integers(0, 2**32), bad=st.sampled_from([math.nan, math.inf, -math.inf]))
def test_what_is_no_number_is_refused(seed: int, bad: float) -> None:
    """One bad entry anywhere: never a silent nan, and never a leak of nothing."""
    terms = view(seed)
    for one in ACCOUNTANTS.values():
        for name in (*telling(one, 1), *telling(one, -1)):
            changed = np.array(terms[name], dtype=np.float64)
            place = np.unravel_index(seed % changed.size, changed.shape)
            changed[place] = bad
            if TERMS[name].marks_absence and not bad < 0:
                found = answer(one, terms, **{name: changed})
                assert found[place] == bad or (math.isnan(bad) and math.isnan(found[place]))
                assert np.sum(~np.isfinite(found)) == 1
            else:
                with pytest.raises(UsageError):
                    answer(one, terms, **{name: changed if changed.shape else bad})


def test_deltas_that_are_none_are_refused(accountant: Callable[..., Any]) -> None:
    for delta in (0.0, 1.0, -1e-9, 2.0):
        if "delta" in parameters(accountant):
            with pytest.raises(UsageError, match="delta"):
                answer(accountant, view(0), delta=delta)


@pytest.mark.parametrize(("users", "rows"), [(1, 0), (1, 1), (2, 1), (2, 0)])
def test_the_smallest_views_are_answered(accountant: Callable[..., Any], users: int, rows: int) -> None:
    """One user who saw nothing, or one row; nobody's answer is missing."""
    found = answer(accountant, view(1, users, rows))
    assert found.shape == ((users, rows) if "mu" in parameters(accountant) else found.shape)
    assert np.all(found >= 0.0)
    if "users" in parameters(accountant):
        assert found.shape == (users,)
