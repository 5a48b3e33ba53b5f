"""The number of rounds until nobody can tell where a report began; on some graphs there is none.

alpha = 1 - max(|lambda_2|, |lambda_n|) of the walk [LTT22, section 4.1]. After t rounds the chance of every
place is within 1 -+ eta of the stationary one for every start, eta = (1 - alpha)^t 2|E| / d_min, so walks of any two
users overlap by kappa = (1 - eta) / (1 + eta) at least.

    "auto"     the first t >= ln(2|E| / (eta d_min)) / alpha with eta = 0.1, hence kappa >= 0.818
    "mixing"   ceil(ln n / alpha), as the paper has it: convergence on the average, which proves nothing about kappa

Guarantee: alpha is rounded down by the residual of Lanczos (`spectra`; that no larger eigenvalue was missed is not
proved there, and `assured` says whether the whole spectrum was computed instead), so rounds are rounded up. Graphs
on which walks never mix are refused for "auto" and "mixing", with the reason; `stay` above 0 makes bipartite ones mix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from p2pdp.core.errors import UsageError
from p2pdp.topology.graphs import Graph
from p2pdp.topology.report_walks.matrix import check_stay, symmetric_form, walk_matrix
from p2pdp.topology.spectra import DENSE_MAX, SpectrumEnds, spectrum_ends

ETA: Final = 0.1
ROUNDS_MAX: Final = 10_000_000
_ROUNDING: Final = 1e-12


@dataclass(frozen=True, slots=True)
class Mixing:
    """Public facts about how a graph mixes; `degree_sum` is 2|E|."""

    n: int
    degree_sum: int
    degree_min: int
    alpha: float
    second: float
    last: float
    assured: bool

    def unevenness(self, rounds: int) -> float:
        """Return eta: how far, relative, the chance of any place may be off after so many rounds; rounded up."""
        if self.n == 1:
            return 0.0
        powered = math.exp(rounds * math.log1p(-self.alpha)) if self.alpha < 1.0 else float(rounds == 0)
        return powered * (1.0 + _ROUNDING * (rounds + 1)) * self.degree_sum / max(self.degree_min, 1)

    def overlap(self, rounds: int) -> float:
        """Return how much the walks of any two users overlap at least (kappa); 0 where eta says nothing."""
        eta = self.unevenness(rounds)
        return max(0.0, (1.0 - eta) / (1.0 + eta)) * (1.0 - 4.0 * _ROUNDING)


def check_mixing(graph: Graph, stay: float) -> None:
    """Refuse graphs on which walks never come to one law, and say why."""
    check_stay(stay)
    if not graph.connected:
        raise UsageError(
            f"[shuffle] rounds: the graph falls into {len(graph.components)} parts, and no report leaves its part, so "
            "walks never mix; connect the graph, or give a number of rounds."
        )
    if stay == 0.0 and graph.n > 1 and graph.bipartite:
        raise UsageError(
            "[shuffle] rounds: the graph is bipartite, so a report's side tells at any time on which side it began and "
            "walks never mix; give [shuffle] stay above 0, or a number of rounds."
        )


def mixing_of(graph: Graph, stay: float = 0.0) -> Mixing:
    """Return how this graph mixes; refuse one that does not."""
    check_mixing(graph, stay)
    degrees = [graph.degree(node) for node in range(graph.n)]
    ends, assured = _ends(graph, stay, sum(degrees))
    largest = max(abs(ends.second), abs(ends.last)) + ends.residual
    alpha = min(1.0, 1.0 - largest)
    if not alpha > _ROUNDING:
        raise UsageError("[shuffle] rounds: walks on this graph mix too slowly to tell that they do; give a number.")
    return Mixing(graph.n, sum(degrees), min(degrees), alpha, ends.second, ends.last, assured)


def _ends(graph: Graph, stay: float, degree_sum: int) -> tuple[SpectrumEnds, bool]:
    if graph.n == 1:
        return SpectrumEnds(0.0, 0.0, 0.0), True
    if degree_sum == graph.n * (graph.n - 1):  # complete: known, and its matrix would be full
        only = stay - (1.0 - stay) / (graph.n - 1)
        return SpectrumEnds(only, only, _ROUNDING), True
    walk = walk_matrix(graph, stay)
    return spectrum_ends(symmetric_form(walk), np.sqrt(walk.stationary)), graph.n <= DENSE_MAX


def auto_rounds(mixing: Mixing, eta: float = ETA) -> int:
    """Return the first number of rounds for which ln(2|E| / (eta d_min)) / alpha is enough."""
    if not 0.0 < eta < 1.0:
        raise UsageError("eta: how uneven walks may be is a number between 0 and 1.")
    if mixing.n == 1:
        return 1
    return _counted(math.log(mixing.degree_sum / (eta * mixing.degree_min)) / mixing.alpha)


def mixing_rounds(mixing: Mixing) -> int:
    """Return the paper's mixing time, ceil(ln n / alpha)."""
    return _counted(math.log(mixing.n) / mixing.alpha)


def rounds_of(graph: Graph, stay: float, wanted: int | str) -> int:
    """Return the number of rounds that `[shuffle] rounds` means on this graph: a number, "auto" or "mixing"."""
    if isinstance(wanted, int):
        check_stay(stay)
        return _counted(wanted)
    if wanted not in {"auto", "mixing"}:
        raise UsageError(f'[shuffle] rounds: "{wanted}" is unknown; give a number, "auto" or "mixing".')
    mixing = mixing_of(graph, stay)
    return auto_rounds(mixing) if wanted == "auto" else mixing_rounds(mixing)


def _counted(rounds: float) -> int:
    if not rounds <= ROUNDS_MAX:
        raise UsageError(f"[shuffle] rounds: {rounds:.3g} of them are too many; at most {ROUNDS_MAX} are walked.")
    return max(1, math.ceil(rounds))
