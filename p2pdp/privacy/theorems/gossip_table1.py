"""The entries of [CEBM22, Table 1], with their constants and logarithms, for a graph and a sigma.

On a run as long as its Theorems 2 and 3 want, `epsilon_mean` is the mean over all users of the Rényi divergence at
`alpha` that one user gets from them (alpha d T / (2 n sigma^2)), and `error` what half of the mean squared error
is at most. A mean bounds nobody's loss: `bound` is false. Sensitivity is 1, so the variance of the data is
at most 1/4, which is public; the paper's time depends on the true one. With randomized gossip a user takes part in
2T/n of T exchanges in the mean, and `epsilon_mean_randomized` counts them; Appendix D.2 prints half of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from p2pdp.core.errors import Refused
from p2pdp.privacy.contract import Accountant, Answer, choice, number, whole
from p2pdp.privacy.theorems.walk_any_graph import DEGREE, GRAPH, SEED, graph_of
from p2pdp.topology.gossip_rounds import activations_needed, rounds_needed
from p2pdp.topology.spectra import spectrum_ends
from p2pdp.topology.weights import METROPOLIS, WEIGHTS, sparse_weights

_SOURCE: Final = "Cyffers, Even, Bellet and Massoulié 2022, Table 1 and Appendices C.3 and D.2"


def _answer(inputs: Mapping[str, Any]) -> Answer:
    n, alpha, sigma = inputs["n"], inputs["alpha"], inputs["sigma"]
    graph = graph_of(inputs)
    gap = spectrum_ends(sparse_weights(graph, inputs["weights"])).gap
    if gap == 0.0:
        raise Refused(f"gossip with {inputs['weights']} weights does not converge on this graph: its spectral gap is 0")
    degree = max(graph.degree(u) for u in range(n))
    rounds = rounds_needed(gap, n, sigma, 1.0, 1, accelerated=True)
    activations = activations_needed(2.0 * gap / n, n, sigma, 1.0, 1)
    local = alpha / (2.0 * sigma**2)
    outputs = {
        "epsilon_mean": local * degree * rounds / n,
        "error": 3.0 * sigma**2 / n,
        "rounds": rounds,
        "epsilon_mean_randomized": local * 2.0 * activations / n**2,
        "error_randomized": 2.0 * sigma**2 / n,
        "activations": activations,
        "epsilon_local": local,
        "degree": degree,
        "spectral_gap": gap,
    }
    assumptions = (
        "a mean over all users, which bounds the loss of none",
        "values differ by at most 1, and every user's start value is noised with sigma",
    )
    return Answer(outputs, False, assumptions, _SOURCE)


ACCOUNTANT: Final = Accountant(
    "mean privacy loss and error of gossip averaging on a graph, as in Table 1 of Muffliato",
    (
        GRAPH,
        whole("n", "users", 2, 2000),
        number("alpha", "order of the Rényi divergence", 1.0, 1e6, is_open=True),
        number("sigma", "standard deviation of a user's noise, for sensitivity 1", 1e-6, 1e6),
        choice("weights", "of the gossip matrix", WEIGHTS, default=METROPOLIS),
        DEGREE,
        SEED,
    ),
    _answer,
)
