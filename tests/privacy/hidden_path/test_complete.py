from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from p2pdp.core.errors import UsageError
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.hidden_path.complete import check_terms, complete_graph
from p2pdp.privacy.hidden_path.curves import Ends
from p2pdp.privacy.hidden_path.gaps import Gap, Stretch, gaps_of


def moves_of(path: Any, origin: int | None) -> list[int]:
    """How often a token has moved before each step, from 0 on."""
    before = path[0] if origin is None else origin
    return [0, *itertools.accumulate(int(one != two) for one, two in itertools.pairwise([before, *path]))]


def gaps_of_paths(n: int, paths: Any, *, starter_known: bool = True) -> list[list[Gap]]:
    """What each user knows of these paths; where their first holders are not known, user 0 drew these."""
    steps, found = len(paths[0]), []
    origin = None if starter_known else 0
    moves = [moves_of(path, origin) for path in paths]
    for observer in range(n):
        seen = [
            [(at + 1, path[at - 1] if at else None, path[at + 1] if at + 1 < steps else None)
             for at in range(steps) if path[at] == observer]
            for path in paths
        ]  # fmt: skip
        starters = [path[0] if starter_known else None for path in paths]
        found.append(gaps_of(seen, steps, starters, moves=moves, origin=origin))
    return found


def walk(n: int, steps: int, seed: int, tokens: int = 1) -> list[list[Gap]]:
    paths = np.random.default_rng(seed).integers(0, n, (tokens, steps))
    return gaps_of_paths(n, paths.tolist(), starter_known=tokens == 1)


def pairs(ends: Ends) -> tuple[Any, Any]:
    apart = ~np.eye(len(ends.upper), dtype=bool)
    return ends.upper[apart], ends.lower[apart]


def both_ends(n: int, gaps: list[list[Gap]], mu: float, delta: float, mu_lower: float | None = None) -> Ends:
    return complete_graph(n, gaps, mu, mu if mu_lower is None else mu_lower, delta, all_lower=True)


def public_epsilons(n: int, path: list[int], mu: float, delta: float) -> Any:
    """The exact Gaussian leak of each pair where the path is public (guide/accounting.md, section 2)."""
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
    upper, lower = pairs(both_ends(2, gaps_of_paths(2, [path]), 0.4, 1e-6))
    exact = public_epsilons(2, path, 0.4, 1e-6)[~np.eye(2, dtype=bool)]
    assert np.all(lower <= exact)
    assert np.all(exact <= upper)
    np.testing.assert_allclose(upper, exact, rtol=1e-2)
    np.testing.assert_allclose(lower, exact, rtol=1e-2)


def test_where_every_slot_is_known_it_is_the_plain_gaussian() -> None:
    """An observer at every second or third step knows all slots: first, last, or both."""
    path = [0, 1, 2, 0, 3, 0, 1, 1, 0, 3, 2, 0] * 5
    ends = both_ends(4, gaps_of_paths(4, [path]), 0.5, 1e-5)
    exact = public_epsilons(4, path, 0.5, 1e-5)[1:, 0]
    assert np.all(ends.lower[1:, 0] <= exact)
    assert np.all(exact <= ends.upper[1:, 0])
    np.testing.assert_allclose(ends.upper[1:, 0], exact, rtol=1e-2)
    np.testing.assert_allclose(ends.lower[1:, 0], exact, rtol=1e-2)


@pytest.mark.parametrize("tokens", [1, 3])
def test_lower_ends_are_below_upper_ends(tokens: int) -> None:
    for n, steps, mu in ((3, 1, 0.5), (3, 2, 0.5), (3, 40, 1.0), (10, 5, 1.0), (12, 200, 0.05), (6, 300, 0.5)):
        ends = both_ends(n, walk(n, steps, n, tokens), mu, 1e-5, mu * 0.999)
        upper, lower = pairs(ends)
        assert np.all(np.isnan(np.diag(ends.upper)))
        assert np.all(lower <= upper)
        assert np.all(lower >= 0.0)


def test_by_default_the_lower_end_is_that_of_the_worst_pair() -> None:
    gaps = walk(5, 60, 2)
    every, one = both_ends(5, gaps, 0.4, 1e-5), complete_graph(5, gaps, 0.4, 0.4, 1e-5)
    worst = np.unravel_index(np.nanargmax(every.upper), (5, 5))
    np.testing.assert_array_equal(one.upper, every.upper)
    assert one.lower[worst] == pytest.approx(every.lower[worst], rel=1e-2)
    assert np.count_nonzero(~np.isnan(one.lower)) == 1


def test_the_total_variation_is_the_delta_at_which_epsilon_falls_to_0() -> None:
    gaps = walk(5, 30, 4)
    variation = complete_graph(5, gaps, 0.4, 0.4, 1e-5).variation
    assert np.isnan(np.diag(variation)).all()
    for user, observer in ((0, 1), (3, 2), (4, 0)):
        most = float(variation[user, observer])
        above, below = (complete_graph(5, gaps, 0.4, 0.4, most * part).upper[user, observer] for part in (1.01, 0.97))
        assert above == 0.0 < below


def test_more_noise_and_a_larger_delta_tell_less() -> None:
    gaps = walk(12, 240, 4)
    for less, more in (((0.1, 1e-6), (0.2, 1e-6)), ((0.2, 1e-3), (0.2, 1e-6)), ((0.2, 1e-6), (0.2, 1e-12))):
        one, two = (both_ends(12, gaps, mu, delta) for mu, delta in (less, more))
        for end in range(2):
            assert np.all(pairs(one)[end] < pairs(two)[end])


UNSEEN = list(range(60))  # moves before each step of a token that never stays


def test_the_more_users_the_less_is_told() -> None:
    """The same gap among more others; and given the visits alone it tells less than its known ends."""
    gap = gaps_of([[]], 60, [None], moves=[[0, *UNSEEN]])
    found = [pairs(both_ends(n, [gap] * n, 0.5, 1e-6)) for n in (3, 6, 12, 50)]
    for fewer, more in itertools.pairwise(found):
        for end in range(2):
            assert fewer[end].min() > more[end].max()


def test_naming_who_starts_or_publishes_tells_more_about_these_only() -> None:
    hidden = gaps_of([[]], 60, [None], moves=[[0, *UNSEEN]])
    told = gaps_of([[]], 60, [2], publisher=4, moves=[[0, *UNSEEN]])
    one = both_ends(8, [hidden] * 8, 0.5, 1e-6)
    two = both_ends(8, [told] * 8, 0.5, 1e-6)
    for user in (1, 3, 5):
        assert two.upper[user, 0] < one.upper[user, 0]
    for user in (2, 4):
        assert two.upper[user, 0] > one.upper[user, 0]
        assert two.lower[user, 0] > one.lower[user, 0]


def test_a_token_that_stays_shows() -> None:
    """Among many, fewer moves leave fewer users who may have been there, each for longer."""
    found = []
    for stays in (0, 30):
        moves = [[0, *(max(0, at - stays) for at in UNSEEN)]]
        found.append(complete_graph(50, [gaps_of([[]], 60, [2], moves=moves)] * 50, 0.5, 0.5, 1e-6).upper)
    assert np.all(found[1][[2, 3], 0] > 1.2 * found[0][[2, 3], 0])


def test_observers_who_saw_nothing_learned_nothing() -> None:
    ends = both_ends(3, [[], gaps_of([[]], 9, [0], moves=[[0, *range(9)]]), []], 0.5, 1e-6)
    assert ends.upper[1, 0] == ends.lower[1, 0] == 0.0
    assert ends.upper[0, 1] > 0.0
    nothing = complete_graph(3, [[], [], []], 0.5, 0.5, 1e-6)
    assert pairs(nothing)[0].tolist() == [0.0] * 6
    assert complete_graph(1, [[]], 0.5, 0.5, 1e-6).upper.shape == (1, 1)


# Against all hidden paths of a whole view.


def fitting_paths(n: int, observer: int, stretch: Stretch) -> list[tuple[int, ...]]:
    """All that the observer's view leaves possible, its first holder's origin left out."""
    others = [user for user in range(n) if user != observer]
    found = []
    for path in itertools.product(others, repeat=stretch.length):
        fits = stretch.first in (None, path[0]) and stretch.last in (None, path[-1])
        if fits and moves_of(path, stretch.origin)[-1] == stretch.moves:
            found.append(path)
    return found


def view_densities(n: int, gaps: list[Gap], held: Any, mu: float, nodes: Any, observer: int) -> Any:
    """The density of all gaps' sums, over a grid, where users hold these values."""
    density = np.ones(())
    for gap in gaps:
        length = sum(stretch.length for stretch in gap)
        paths = [sum(found, ()) for found in itertools.product(*(fitting_paths(n, observer, one) for one in gap))]
        sums = np.array(held)[np.array(paths)].sum(axis=1) * mu / math.sqrt(length)
        places, times = np.unique(sums, return_counts=True)
        one = np.exp(-((nodes[:, None] - places) ** 2) / 2) @ (times / len(paths)) / math.sqrt(2 * math.pi)
        density = np.multiply.outer(density, one)
    return density


def true_delta(one: Any, two: Any, epsilon: float, cell: float) -> float:
    return float(np.maximum(one - math.exp(epsilon) * two, 0.0).sum() * cell)


def compare_with_truth(n: int, gaps: list[Gap], ends: Ends, user: int, observer: int, mu: float, delta: float) -> float:
    """The truth for several values of the others is below the upper end; returns the largest at the lower end."""
    nodes = np.linspace(-7.0, 11.0, 451 if len(gaps) > 1 else 4001)
    cell = (nodes[1] - nodes[0]) ** len(gaps)
    reached = 0.0
    rest = [one for one in range(n) if one not in (user, observer)]
    for values in itertools.product((0.0, 0.6, 1.0), repeat=len(rest)):
        held = dict(zip(rest, values, strict=True)) | {observer: math.nan}
        low, high = (
            view_densities(n, gaps, [(held | {user: own})[one] for one in range(n)], mu, nodes, observer)
            for own in (0.0, 1.0)
        )
        for one, two in ((low, high), (high, low)):
            assert true_delta(one, two, float(ends.upper[user, observer]), cell) <= delta * (1 + 1e-4)
            assert true_delta(one, two, 0.0, cell) <= float(ends.variation[user, observer]) * (1 + 1e-4)
            reached = max(reached, true_delta(one, two, float(ends.lower[user, observer]), cell))
    return reached


@pytest.mark.parametrize(("n", "path"), [(3, [0, 1, 1, 0, 2, 1, 0, 1]), (4, [1, 0, 2, 0, 3, 2, 0, 1]),
                                         (4, [0, 0, 2, 0, 3, 2, 2, 0])])  # fmt: skip
def test_all_hidden_paths_of_a_view_tell_what_lies_between_the_ends(n: int, path: list[int]) -> None:
    """By numeric integration over two gaps, for several values of the others."""
    mu, delta = 0.8, 1e-2
    observer = n - 1
    gaps = gaps_of_paths(n, [path])
    assert len(gaps[observer]) == 2
    ends = both_ends(n, gaps, mu, delta)
    assert compare_with_truth(n, gaps[observer], ends, 0, observer, mu, delta) >= delta * (1 - 1e-4)


def every_gap(n: int, observer: int, length: int) -> list[Stretch]:
    """One for each that there can be between two visits, and after the last one."""
    found = set()
    others = [user for user in range(n) if user != observer]
    for path in itertools.product(others, repeat=length):
        moves = moves_of(path, None)[-1]
        found |= {Stretch(length, path[0], last, moves) for last in (path[-1], None)}
        found.add(Stretch(length, None, path[-1], moves_of(path, 0)[-1], 0))
    return sorted(found, key=repr)


@pytest.mark.parametrize(("n", "length"), [(4, 3), (5, 4), (6, 3)])
def test_every_view_of_a_gap_and_of_its_moves_tells_what_lies_between_the_ends(n: int, length: int) -> None:
    """The joint law of the view and of the number of moves is that of all paths; others' values are worst corners."""
    mu, delta, observer = 1.0, 1e-2, n - 1
    for stretch in every_gap(n, observer, length):
        gaps = [[] if user != observer else [(stretch,)] for user in range(n)]
        ends = both_ends(n, gaps, mu, delta)
        for user in (0, 1):
            reached = compare_with_truth(n, gaps[observer], ends, user, observer, mu, delta)
            assert ends.upper[user, observer] == 0.0 or reached >= delta * (1 - 1e-3), stretch


def test_stretches_that_are_seen_as_one_sum_hide_each_other() -> None:
    """What follows the last visits of two tokens, one of which the observer never had."""
    n, mu, delta, observer = 4, 1.0, 1e-2, 3
    gap = (Stretch(3, 1, None, 2), Stretch(2, None, None, 1, 0))
    gaps = [[] if user != observer else [gap] for user in range(n)]
    ends = both_ends(n, gaps, mu, delta)
    for user in (0, 1):
        assert compare_with_truth(n, gaps[observer], ends, user, observer, mu, delta) >= delta * (1 - 1e-3)


def test_moves_tell_what_the_visits_alone_do_not() -> None:
    """A gap of three, Delta = sigma = 1, delta = 0.01, five users: the truth once the moves are known, from all paths.

    The visits alone leave 0.170 for a user at neither end, and 1.564 for one of two ends.
    """
    found = {}
    for last, moves in ((1, 0), (1, 2), (2, 1), (2, 2)):
        gaps = [[] if user != 4 else [(Stretch(3, 1, last, moves),)] for user in range(5)]
        upper = complete_graph(5, gaps, 1.0, 1.0, 1e-2).upper
        found[last, moves] = float(upper[0, 4]), float(upper[1, 4])
    one, two, three = (gaussian.epsilon_of(1e-2, count / math.sqrt(3)) for count in (1, 2, 3))
    assert found[1, 0] == pytest.approx((0.0, three), rel=2e-2)
    assert found[1, 2] == pytest.approx((0.351, two), rel=2e-2)
    assert found[2, 2] == pytest.approx((0.571, one), rel=2e-2)
    assert found[2, 1][0] == 0.0
    assert 2.133 <= found[2, 1][1] <= 2.5  # an end of it, there once or twice: hiding which does not count


def test_replayed_views_never_tell_more_than_the_upper_end() -> None:
    """Section 5 of the notes: slots redrawn given the visits, the best test there is, others' values at random.

    With error 1e-6 by Hoeffding: the mean of values in [0, 1] is off by at most sqrt(ln(1e6) / (2 trials)).
    """
    n, steps, mu, delta, trials = 8, 160, 0.6, 0.05, 100_000
    random = np.random.default_rng(3)
    gaps = walk(n, steps, 3)
    ends = complete_graph(n, gaps, mu, mu, delta)
    observer, user = 5, 2
    values = random.integers(0, 2, n)
    ratios = np.zeros(trials)
    for (stretch,) in gaps[observer]:
        laws = []
        for own in (0, 1):
            values[user] = own
            laws.append(sum_law(n, observer, stretch, values.tolist()))
        seen = random.choice(len(laws[1]), trials, p=laws[1]) + math.sqrt(stretch.length) / mu * random.normal(
            size=trials
        )
        ratios += log_density(seen, laws[1], stretch, mu) - log_density(seen, laws[0], stretch, mu)
    told = np.maximum(0.0, -np.expm1(np.minimum(ends.upper[user, observer] - ratios, 0.0))).mean()
    assert told <= delta + math.sqrt(math.log(1e6) / (2 * trials))
    told = np.maximum(0.0, -np.expm1(np.minimum(-ratios, 0.0))).mean()
    assert told > 3 * delta, "the test is no weak one"


def sum_law(n: int, observer: int, stretch: Stretch, values: list[int]) -> Any:
    """Of the sum of a stretch's slots, given its moves, holder by holder; values are 0 or 1."""
    assert stretch.moves is not None
    weights = np.zeros((n, stretch.moves + 2, stretch.length + 1))  # by holder, moves and sum
    for user in {*range(n)} - {observer} if stretch.first is None else {stretch.first}:
        weights[user, 0, values[user]] = 1.0
    for _ in range(stretch.length - 1):
        moved = np.zeros_like(weights)
        total = weights.sum(axis=0)
        for user in {*range(n)} - {observer}:
            one = weights[user].copy()
            one[1:] += total[:-1] - weights[user][:-1]
            moved[user, :, values[user] :] = one[:, : one.shape[1] - values[user]]
        weights = moved
    law = weights[:, stretch.moves].sum(axis=0) if stretch.last is None else weights[stretch.last, stretch.moves]
    return law / law.sum()


def log_density(seen: Any, law: Any, stretch: Stretch, mu: float) -> Any:
    """Of a gap's sum, but for what is the same for all laws."""
    places = np.arange(len(law)) * mu / math.sqrt(stretch.length)
    parts = -((seen[:, None] * mu / math.sqrt(stretch.length) - places) ** 2) / 2 + np.log(np.maximum(law, 1e-300))
    return np.logaddexp.reduce(parts, axis=1)


# Wrong inputs.


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, math.nan, math.inf])
def test_impossible_deltas_are_refused(delta: float) -> None:
    with pytest.raises(UsageError, match="delta"):
        complete_graph(3, walk(3, 5, 1), 0.5, 0.5, delta)


@pytest.mark.parametrize("mus", [(math.nan, 0.1), (0.5, math.nan), (math.inf, 0.1), (0.1, 0.5), (-1.0, -2.0)])
def test_impossible_mus_are_refused(mus: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match="mu"):
        check_terms(*mus, 1e-6)


def test_without_the_number_of_moves_nothing_is_said() -> None:
    gap = [(Stretch(3, 0, None),)]
    with pytest.raises(UsageError, match="moved"):
        complete_graph(3, [[], gap, []], 0.5, 0.5, 1e-6)


def test_each_user_is_an_observer() -> None:
    with pytest.raises(UsageError, match="3 users have gaps of 3 observers, not of 2"):
        complete_graph(3, [[], []], 0.5, 0.5, 1e-6)
