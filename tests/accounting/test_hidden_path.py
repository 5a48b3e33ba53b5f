from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from p2pdp.accounting.hidden_path import Kind, binomial_law, check_terms, complete_graph, part
from p2pdp.accounting.hidden_path_curves import Ends
from p2pdp.accounting.hidden_path_gaps import Gap, gaps_of
from p2pdp.core.errors import UsageError
from p2pdp.mechanisms import gaussian


def gaps_of_paths(n: int, paths: Any, *, starter_known: bool = True) -> list[list[Gap]]:
    """What each user knows of these paths."""
    steps, found = len(paths[0]), []
    for observer in range(n):
        seen = [
            [(at + 1, path[at - 1] if at else None, path[at + 1] if at + 1 < steps else None)
             for at in range(steps) if path[at] == observer]
            for path in paths
        ]  # fmt: skip
        found.append(gaps_of(seen, steps, [path[0] if starter_known else None for path in paths]))
    return found


def walk(n: int, steps: int, seed: int, tokens: int = 1) -> list[list[Gap]]:
    paths = np.random.default_rng(seed).integers(0, n, (tokens, steps))
    return gaps_of_paths(n, paths.tolist(), starter_known=tokens == 1)


def pairs(ends: Ends) -> tuple[Any, Any]:
    apart = ~np.eye(len(ends.upper), dtype=bool)
    return ends.upper[apart], ends.lower[apart]


def public_epsilons(n: int, path: list[int], mu: float, delta: float) -> Any:
    """The exact Gaussian leak of each pair where the path is public (accounting notes, section 2)."""
    found = np.full((n, n), np.nan)
    for observer in range(n):
        ends = [-1, *(at for at, user in enumerate(path) if user == observer), len(path)]
        squares = np.zeros(n)
        for begin, end in itertools.pairwise(ends):
            counts = np.bincount(path[begin + 1 : end], minlength=n)
            squares += counts**2 / max(end - begin - 1, 1)
        for user in set(range(n)) - {observer}:
            found[user, observer] = gaussian.epsilon_of(delta, mu * math.sqrt(squares[user]))
    return found


def test_of_two_users_the_path_is_known() -> None:
    path = np.random.default_rng(1).integers(0, 2, 40).tolist()
    upper, lower = pairs(complete_graph(2, gaps_of_paths(2, [path]), 0.4, 0.4, 1e-6))
    exact = public_epsilons(2, path, 0.4, 1e-6)[~np.eye(2, dtype=bool)]
    assert np.all(lower <= exact)
    assert np.all(exact <= upper)
    np.testing.assert_allclose(upper, exact, rtol=1e-2)
    np.testing.assert_allclose(lower, exact, rtol=1e-2)


def test_where_every_slot_is_known_it_is_the_plain_gaussian() -> None:
    """An observer at every second or third step knows all slots: first, last, or both."""
    path = [0, 1, 2, 0, 3, 0, 1, 1, 0, 3, 2, 0] * 5
    ends = complete_graph(4, gaps_of_paths(4, [path]), 0.5, 0.5, 1e-5)
    exact = public_epsilons(4, path, 0.5, 1e-5)[1:, 0]
    assert np.all(ends.lower[1:, 0] <= exact)
    assert np.all(exact <= ends.upper[1:, 0])
    np.testing.assert_allclose(ends.upper[1:, 0], exact, rtol=1e-2)
    np.testing.assert_allclose(ends.lower[1:, 0], exact, rtol=1e-2)


@pytest.mark.parametrize("tokens", [1, 3])
def test_lower_ends_are_below_upper_ends(tokens: int) -> None:
    for n, steps, mu in ((3, 1, 0.5), (3, 2, 0.5), (3, 40, 1.0), (10, 5, 1.0), (12, 200, 0.05), (6, 300, 0.5)):
        ends = complete_graph(n, walk(n, steps, n, tokens), mu, mu * 0.999, 1e-5)
        upper, lower = pairs(ends)
        assert np.all(np.isnan(np.diag(ends.upper)))
        assert np.all(lower <= upper)
        assert np.all(lower >= 0.0)


def test_more_noise_and_a_larger_delta_tell_less() -> None:
    gaps = walk(12, 240, 4)
    for less, more in (((0.1, 1e-6), (0.2, 1e-6)), ((0.2, 1e-3), (0.2, 1e-6)), ((0.2, 1e-6), (0.2, 1e-12))):
        one, two = (complete_graph(12, gaps, mu, mu, delta) for mu, delta in (less, more))
        for end in range(2):
            assert np.all(pairs(one)[end] < pairs(two)[end])


def test_the_more_users_the_less_is_told() -> None:
    """The same gap among more others; and given the visits alone it tells less than its known ends."""
    gap = gaps_of([[]], 60, [None])
    found = [pairs(complete_graph(n, [gap] * n, 0.5, 0.5, 1e-6)) for n in (3, 6, 12, 50)]
    for fewer, more in itertools.pairwise(found):
        for end in range(2):
            assert fewer[end].min() > more[end].max()


def test_naming_who_starts_or_publishes_tells_more_about_these_only() -> None:
    hidden = gaps_of([[]], 60, [None])
    told = gaps_of([[]], 60, [2], publisher=4)
    one = complete_graph(8, [hidden] * 8, 0.5, 0.5, 1e-6)
    two = complete_graph(8, [told] * 8, 0.5, 0.5, 1e-6)
    for user in (1, 3, 5):
        assert two.upper[user, 0] < one.upper[user, 0]
    for user in (2, 4):
        assert two.upper[user, 0] > one.upper[user, 0]
        assert two.lower[user, 0] > one.lower[user, 0]


def test_observers_who_saw_nothing_learned_nothing() -> None:
    ends = complete_graph(3, [[], gaps_of([[]], 9, [0]), []], 0.5, 0.5, 1e-6)
    assert ends.upper[1, 0] == ends.lower[1, 0] == 0.0
    assert ends.upper[0, 1] > 0.0
    nothing = complete_graph(3, [[], [], []], 0.5, 0.5, 1e-6)
    assert pairs(nothing)[0].tolist() == [0.0] * 6
    assert complete_graph(1, [[]], 0.5, 0.5, 1e-6).upper.shape == (1, 1)


# Against all hidden paths of a whole view.


def view_densities(n: int, gaps: list[Gap], own: float, values: Any, mu: float, nodes: Any) -> Any:
    """The density of all gaps' sums, over a grid, for user 0 with value `own`; the others' are in `values`."""
    density = np.ones(())
    held = np.array([own, *values])  # the observer is the last user, in nobody's hidden slot
    for (stretch,) in gaps:
        ends = {0: stretch.first, stretch.length - 1: stretch.last}
        free = [at for at in range(stretch.length) if ends.get(at) is None]
        sums = []
        for path in itertools.product(range(n - 1), repeat=len(free)):
            slots = {at: user for at, user in ends.items() if user is not None} | dict(zip(free, path, strict=True))
            sums.append(sum(held[user] for user in slots.values()))
        scaled = mu / math.sqrt(stretch.length) * np.array(sums)
        one = np.exp(-((nodes[:, None] - scaled) ** 2) / 2).mean(axis=1) / math.sqrt(2 * math.pi)
        density = np.multiply.outer(density, one)
    return density


@pytest.mark.parametrize(("n", "path"), [(3, [0, 1, 1, 0, 2, 1, 0, 1]), (4, [1, 0, 2, 0, 3, 2, 0, 1])])
def test_all_hidden_paths_of_a_view_tell_what_lies_between_the_ends(n: int, path: list[int]) -> None:
    """By numeric integration over two gaps, for several values of the others."""
    mu, delta, nodes = 0.8, 1e-2, np.linspace(-7.0, 11.0, 451)
    observer = n - 1
    gaps = gaps_of_paths(n, [path])
    assert len(gaps[observer]) == 2
    ends = complete_graph(n, gaps, mu, mu, delta)
    cell = (nodes[1] - nodes[0]) ** 2

    def true_delta(one: Any, two: Any, epsilon: float) -> float:
        return float(np.maximum(one - math.exp(epsilon) * two, 0.0).sum() * cell)

    reached = 0.0
    for values in itertools.product((0.0, 0.6, 1.0), repeat=n - 2):
        low, high = (view_densities(n, gaps[observer], own, values, mu, nodes) for own in (0.0, 1.0))
        for one, two in ((low, high), (high, low)):
            assert true_delta(one, two, float(ends.upper[0, observer])) <= delta * (1 + 1e-4)
            reached = max(reached, true_delta(one, two, float(ends.lower[0, observer])))
    assert reached >= delta * (1 - 1e-4)


def test_replayed_views_never_tell_more_than_the_upper_end() -> None:
    """Section 5 of the notes: slots redrawn given the visits, the best test there is, others' values at random.

    With error 1e-6 by Hoeffding: the mean of values in [0, 1] is off by at most sqrt(ln(1e6) / (2 trials)).
    """
    n, steps, mu, delta, trials = 8, 160, 0.6, 0.05, 100_000
    random = np.random.default_rng(3)
    gaps = walk(n, steps, 3)
    ends = complete_graph(n, gaps, mu, mu, delta)
    observer, user = 5, 2
    values = random.integers(0, 2, n) * 1.0
    ratios = np.zeros(trials)
    for (stretch,) in gaps[observer]:
        others = [one for one in range(n) if one not in (observer, user)]
        hidden = stretch.length - len(stretch.known)
        sums = sum(values[one] for one in stretch.known if one != user) + np.zeros(trials)
        slots = random.integers(0, n - 1, (trials, hidden))  # n - 2 stands for the user
        table = np.array([values[one] for one in others] + [1.0])
        sums += stretch.known.count(user) + table[slots].sum(axis=1)
        seen = sums + math.sqrt(stretch.length) / mu * random.normal(size=trials)
        ratios += log_density(seen, stretch, others, user, values, 1.0, mu)
        ratios -= log_density(seen, stretch, others, user, values, 0.0, mu)
    told = np.maximum(0.0, -np.expm1(np.minimum(ends.upper[user, observer] - ratios, 0.0))).mean()
    assert told <= delta + math.sqrt(math.log(1e6) / (2 * trials))
    told = np.maximum(0.0, -np.expm1(np.minimum(-ratios, 0.0))).mean()
    assert told > 3 * delta, "the test is no weak one"


def log_density(seen: Any, stretch: Any, others: list[int], user: int, values: Any, own: float, mu: float) -> Any:
    """Of a gap's sum: the distribution of the sum of its slots by convolution, values being 0 or 1."""
    slot = np.zeros(2)
    for one in others:
        slot[int(values[one])] += 1 / (len(others) + 1)
    slot[int(own)] += 1 / (len(others) + 1)
    law = np.ones(1)
    for _ in range(stretch.length - len(stretch.known)):
        law = np.convolve(law, slot)
    known = sum(own if one == user else values[one] for one in stretch.known)
    places = (known + np.arange(len(law))) * mu / math.sqrt(stretch.length)
    parts = -((seen[:, None] * mu / math.sqrt(stretch.length) - places) ** 2) / 2 + np.log(np.maximum(law, 1e-300))
    return np.logaddexp.reduce(parts, axis=1)


# Laws and wrong inputs.


@pytest.mark.parametrize(("n", "hidden"), [(3, 0), (3, 1), (3, 5000), (100, 98), (100, 9999), (1000, 10**6)])
def test_slots_are_binomial(n: int, hidden: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    law = binomial_law(n, Kind(hidden + 1, 1, hidden), 1e-13)
    assert law[0] == 0.0
    np.testing.assert_allclose(law[1:], stats.binom.pmf(np.arange(len(law) - 1), hidden, 1 / (n - 1)), atol=1e-13)
    assert 1.0 - 1e-12 <= law.sum() <= 1.0 + 1e-12


def test_a_part_says_whether_hiding_protects() -> None:
    assert not part(9, Kind(4, 0, 2), 0.5, 0.4, 1e-12).told
    one = part(9, Kind(4, 1, 2), 0.5, 0.4, 1e-12)
    assert (one.told, one.mu_upper, one.mu_lower) == (True, 0.25, 0.2)
    assert binomial_law(2, Kind(5, 2, 3), 1e-9).tolist() == [0, 0, 0, 0, 0, 1]


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, math.nan, math.inf])
def test_impossible_deltas_are_refused(delta: float) -> None:
    with pytest.raises(UsageError, match="delta"):
        complete_graph(3, walk(3, 5, 1), 0.5, 0.5, delta)


@pytest.mark.parametrize("mus", [(math.nan, 0.1), (0.5, math.nan), (math.inf, 0.1), (0.1, 0.5), (-1.0, -2.0)])
def test_impossible_mus_are_refused(mus: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match="mu"):
        check_terms(*mus, 1e-6)


def test_each_user_is_an_observer() -> None:
    with pytest.raises(UsageError, match="3 users have gaps of 3 observers, not of 2"):
        complete_graph(3, [[], []], 0.5, 0.5, 1e-6)
