"""The law of exposures over all paths: small walks path by path, coefficients by recursion, and sampled walks."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from p2pdp.privacy.gaussian_curve import gaussian_deltas
from p2pdp.privacy.iteration import law as module
from p2pdp.privacy.iteration.law import MARGIN, Walked, exposure_law
from p2pdp.privacy.iteration.path import exposures
from p2pdp.privacy.iteration.walk import Exposure, epsilon
from p2pdp.privacy.visits import Law, gaussian_epsilon

SMALL = [(3, 5, 1), (4, 5, 2), (4, 4, 0), (2, 5, 1), (1, 4, 0), (3, 1, 1)]


def exposed(walked: Walked, path: tuple[int, ...]) -> float:
    """Return what a path tells of user 0, by the account of known paths; the last users watch."""
    users = np.array((0,) * walked.starts + path)
    watched = users >= walked.n - walked.watchers
    gap = np.cumsum(watched)[~watched]
    foreign = users[~watched]
    return float(exposures(gap, foreign, np.ones(len(foreign)), walked.n)[0])


def every_path(walked: Walked) -> Law:
    paths = itertools.product(range(walked.n), repeat=walked.steps)
    costs = [exposed(walked, path) for path in paths]
    return Law(np.array(costs), np.full(len(costs), 1.0 / len(costs)))


@pytest.mark.parametrize(("n", "steps", "watchers"), SMALL)
def test_without_a_first_step_it_is_the_law_over_all_paths(n: int, steps: int, watchers: int) -> None:
    """Pieces of minorants are distributed like cycles of permutations [APRU11]."""
    walked = Walked(n, steps, False, watchers)
    found, true = exposure_law(walked, 1e-5), every_path(walked)
    near = found.counts[-1] / 1000.0  # some cells of the grid
    for cost in np.unique(np.round(true.counts, 9)):
        beyond = float(true.masses[true.counts >= cost - 1e-8].sum())
        assert float(found.masses[found.counts >= cost - 1e-8].sum()) >= beyond - 1e-9
        assert float(found.masses[found.counts >= cost + near].sum()) <= beyond + 1e-9
    assert found.lost < 1e-8


@pytest.mark.parametrize(("n", "steps", "watchers"), SMALL)
def test_with_a_first_step_it_is_at_least_the_law_over_all_paths(n: int, steps: int, watchers: int) -> None:
    walked = Walked(n, steps, True, watchers)
    found, true = exposure_law(walked, 1e-5), every_path(walked)
    for cost in np.unique(np.round(true.counts, 9)):
        beyond = float(true.masses[true.counts >= cost - 1e-8].sum())
        assert float(found.masses[found.counts >= cost - 1e-8].sum()) >= beyond - 1e-9
    assert found.mean <= 1.08 * true.mean


@pytest.mark.parametrize("watchers", [0, 1, 3])
def test_the_circle_gives_what_recursion_gives(watchers: int) -> None:
    """The same series, multiplied out one coefficient after another."""
    walked = Walked(6, 300, False, watchers)
    pieces = module._Pieces(walked)
    spectra = pieces.spectra(0.01, 1024)[:, :200]
    count, seen = len(pieces.lengths), watchers / walked.n
    terms = (1.0 - seen) ** pieces.lengths[:, None] * spectra
    gaps = np.zeros((count + 1, 200), dtype=np.complex128)
    gaps[0] = 1.0
    for at in range(1, count + 1):
        gaps[at] = (terms[:at] * gaps[:at][::-1]).sum(axis=0) / at
    whole = np.zeros_like(gaps)
    for at in range(count + 1):
        whole[at] = gaps[at] + seen * (gaps[:at] * whole[:at][::-1]).sum(axis=0)
    assert np.abs(pieces.ends(spectra) - whole[-1]).max() < MARGIN / 100.0


def test_sampled_walks_agree() -> None:
    """At a delta that 20,000 sampled paths settle: their mean delta is within five deviations."""
    n, steps, mu, at, count = 12, 80, 1.0, 3.0, 20_000
    paths = np.random.default_rng(7).integers(0, n, (count, steps)).ravel()
    owner = np.where(paths == 0, np.repeat(np.arange(count), steps), count)  # user 0 of each path is somebody else
    foreign = paths < n - 1
    gap = np.cumsum((paths == n - 1) | (np.arange(len(paths)) % steps == 0))  # a new path begins a new gap too
    gap = gap[foreign]
    costs = exposures(gap, owner[foreign], np.ones(len(gap)), count + 1)[:count]
    deltas = gaussian_deltas(np.array(at), mu * np.sqrt(np.maximum(costs, 1e-12)))
    law = exposure_law(Walked(n, steps, False, 1), 1e-5)
    told = law.counts > 0.0
    ours = float(law.masses[told] @ gaussian_deltas(np.array(at), mu * np.sqrt(law.counts[told])))
    spread = float(deltas.std()) / math.sqrt(len(deltas))
    assert ours >= float(deltas.mean()) - 5.0 * spread
    assert ours <= 1.02 * (float(deltas.mean()) + 5.0 * spread)


@pytest.mark.parametrize(("n", "steps", "most", "first"), [(50, 500, 7.50, 7.77)])
def test_known_answers_are_below_those_of_renyi_divergences(n: int, steps: int, most: float, first: float) -> None:
    """Sigma 2 for a clip of 1: 7.66 and 5.93 were found by sampling paths, 10.76 and 8.66 by Rényi divergences."""
    for starts, value in ((False, most), (True, first)):
        law = exposure_law(Walked(n, steps - 1, starts, 1), 1e-5)
        found = gaussian_epsilon(law, 1.0, 1e-5)
        assert value - 0.02 < found < value
        assert found < 0.8 * epsilon(1.0, Exposure(n, steps - 1, starts), 1, 1e-5)


def test_tokens_add_up_and_more_watchers_see_more() -> None:
    one, two = exposure_law(Walked(8, 30, False, 1), 1e-5), exposure_law(Walked(8, 30, False, 1, 2), 1e-5)
    assert two.mean == pytest.approx(2.0 * one.mean, rel=2e-3)
    found = [gaussian_epsilon(exposure_law(Walked(8, 30, False, k), 1e-5), 1.0, 1e-5) for k in range(7)]
    assert found == sorted(found)
