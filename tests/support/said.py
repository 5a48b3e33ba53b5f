"""Numbers that the README and the guide claim, and where each of them comes from.

`SAID` recomputes them from the code: a pattern of the page, its groups the numbers, and a function that returns the
same. `HELD` names a test that holds the number, with the words of that test. `EXEMPT` are numbers that are no claims of
ours, each with the reason. `unsaid` finds numbers in prose that are in none of them. Code, in blocks and between
backticks, is not prose: `tests/contracts/test_guide_commands.py` and the examples' own tests read it.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Final

import networkx as nx
import numpy as np

from p2pdp.assembly import curves
from p2pdp.assembly.curves import PLACES_MAX
from p2pdp.auditor.headline import reading_of
from p2pdp.auditor.pairs import HELD_MAX
from p2pdp.core.spec import GraphPart
from p2pdp.crypto.enrolment import seat_size
from p2pdp.crypto.roster import ENTRY_BYTES
from p2pdp.experiments.factorized import neighbour_means, told, told_following
from p2pdp.experiments.figures.decor import PRINTED, exact_of
from p2pdp.experiments.figures.decor_digits import USERS as DECOR_USERS
from p2pdp.experiments.figures.mafalda import CURVED
from p2pdp.experiments.gossip_leaks import Gossip, printed_leaks
from p2pdp.experiments.sheet import WIDTHS_IN
from p2pdp.experiments.shuffles import KAPPA_AUTO
from p2pdp.experiments.walks import separate_exposures
from p2pdp.files.guide import FOLDER
from p2pdp.files.spec import demo_spec
from p2pdp.mechanisms.dither import SCALE
from p2pdp.peer.enrolment import RETRY_MAX_S
from p2pdp.peer.limits import BYTES, MESSAGES, QUESTIONS, REPEATS, RESENDS, WRONG
from p2pdp.peer.peers import BURST_MAX
from p2pdp.peer.pieces import PIECE_BYTES
from p2pdp.peer.standstill import GAPS_MIN, VISITS_MIN
from p2pdp.peer.watch import POKES_MAX, STRETCH_MAX
from p2pdp.privacy.composition import homogeneous
from p2pdp.privacy.contract import account
from p2pdp.privacy.iteration.law import STEPS_MAX, Walked, exposure_law
from p2pdp.privacy.iteration.path import exposures
from p2pdp.privacy.iteration.walk import Exposure, mean_inverse_gap
from p2pdp.privacy.iteration.walk import epsilon as by_divergences
from p2pdp.privacy.pairwise import COMPONENT_MAX, own_sigma, pair_leaks, pair_noise
from p2pdp.privacy.visits import gaussian_epsilon
from p2pdp.protocols.dithering import MODEL_BITS, REACH_BITS, SHORT_BITS
from p2pdp.protocols.gossip.averaging import ACTIVATIONS_MAX, ROUNDS_MAX
from p2pdp.protocols.gossip.sgd import LEARNING_MAX
from p2pdp.protocols.pairwise.analysis.a_priori import TRIED
from p2pdp.protocols.shuffle.network import RELAYS_MAX
from p2pdp.protocols.walk.options import CHANCE, CONTRIBUTIONS_MAX, RING_MAX, TOKENS_MAX, WALK_MAX
from p2pdp.runs.plan import USERS_MAX
from p2pdp.sim.trials import COMPARED_MAX
from p2pdp.topology.components import PLACEMENTS
from p2pdp.topology.graphs import graph_of_edges, make_graph
from p2pdp.topology.report_walks.mixing import ETA
from p2pdp.topology.weights import sparse_weights
from p2pdp.transports.tcp.transport import FRAMES_A_TURN
from p2pdp.web.live import RELOAD_S
from p2pdp.web.picture import EDGES_MAX as LINKS_SHOWN
from p2pdp.web.picture import USERS_MAX as USERS_SHOWN
from p2pdp.web.server import ANSWERS_MAX, FEED_SLOW_S, FEEDS_MAX, SLOW_S
from p2pdp.web.server import CONNECTIONS_MAX as HTTP_MAX
from p2pdp.wire.padding import frame_size
from tests.support import readme
from tests.support.sources import TOP

Numbers = Sequence[float]


@dataclass(frozen=True, slots=True)
class Said:
    """Numbers of a page that are recomputed; the pattern's groups are the numbers, in the order of `numbers`."""

    page: str
    pattern: str
    numbers: Callable[[], Numbers]


@dataclass(frozen=True, slots=True)
class Held:
    """Numbers that a test elsewhere holds: its file, and words of it that would change with the numbers."""

    page: str
    pattern: str
    test: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Exempt:
    """Numbers that are no claims of ours, on a page or, where that is empty, on all."""

    page: str
    pattern: str
    reason: str


def _of(name: str, **asked: Any) -> dict[str, float]:
    return {key: float(value) for key, value in account(name, asked).outputs.items()}


def _ring_of_16() -> Numbers:
    graph = make_graph(GraphPart("ring"), 16, 0)
    return [float(printed_leaks(Gossip(graph, sparse_weights(graph, "metropolis"), 0.1, 8), [0])[8, 0])]


def _grid_ranks() -> Numbers:
    """Return the mean leak by dense singular values of powers of W, as far as rank tells it, and the exact one."""
    side, rounds, observer = 45, 243, 20
    places = nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side), ordering="sorted")
    graph = graph_of_edges(side * side, list(places.edges))
    weights = sparse_weights(graph, "metropolis")
    rows = np.zeros((1 + rounds * len(graph.neighbours[observer]), graph.n))
    rows[0, observer] = 1.0
    layer = np.zeros((len(graph.neighbours[observer]), graph.n))
    layer[np.arange(len(layer)), list(graph.neighbours[observer])] = 1.0
    for at in range(rounds):
        rows[1 + at * len(layer) : 1 + (at + 1) * len(layer)] = layer
        layer = layer @ weights
    rank = int(np.linalg.matrix_rank(rows))
    exact = 730  # tests/privacy/linear/test_krylov.py has it by exact arithmetic
    return [side, side, rounds, (rank - 1) / (graph.n - 1), (exact - 1) / (graph.n - 1)]


def _repeats() -> Numbers:
    gap, user = np.array([0, 0]), np.array([0, 0])
    return [float(exposures(gap, user, np.ones(2), 1)[0]), float(separate_exposures(gap, user, 1)[0])]


def _sigmas() -> Numbers:
    asked = ((0.1, 1e-6), (1.0, 1e-5), (5.0, 1e-6))
    return [number for e, d in asked for number in (e, d, _of("gaussian_sigma", epsilon=e, delta=d)["sigma"])]


def _epsilons() -> Numbers:
    asked = ((1.0, 1e-5), (4.0, 1e-6))
    return [number for s, d in asked for number in (s, d, _of("gaussian", sigma=s, delta=d)["epsilon"])]


def _renyi() -> Numbers:
    asked = ((2.0, 1.0, 1e-5), (32.0, 0.5, 1e-6))
    both = ("simple", "tight")
    return [
        number
        for a, e, d in asked
        for number in (a, e, d, *(_of("rdp_to_dp", alpha=a, rdp=e, delta=d, conversion=way)["epsilon"] for way in both))
    ]


def _clones() -> Numbers:
    found: list[float] = []
    for e, n, d in ((4.0, 100_000, 1e-6), (1.0, 1000, 1e-6)):
        ends = _of("clones", epsilon0=e, n=n, delta=d)
        assert ends["upper"] - ends["lower"] < 5e-9
        found += [e, n, d, ends["upper"]]
    return found


def _network_shuffling() -> Numbers:
    found: list[float] = []
    for e, n in ((0.5, 10_000), (1.0, 22_470)):
        asked = {"epsilon0": e, "n": n, "sum_p2": 1.0 / n, "delta": 5e-7}
        printed = _of("network_shuffle_all", delta2=5e-7, **asked)["epsilon"]
        found += [e, n, printed, _of("network_shuffle_single", **asked)["epsilon"]]
    return found


def _ring_histograms() -> Numbers:
    found: list[float] = []
    for e, k, n, d in ((1.0, 10, 100, 1e-5), (2.0, 5, 300, 1e-6)):
        ends = _of("krr_shuffle", epsilon0=e, categories=k, n=n, delta=d)
        found += [e, k, n, d, ends["lower"], ends["upper"]]
    return found


def _exposed() -> Numbers:
    by_law = [gaussian_epsilon(exposure_law(Walked(50, 499, starts, 1), 1e-5), 1.0, 1e-5) for starts in (False, True)]
    renyi = [by_divergences(1.0, Exposure(50, 499, starts), 1, 1e-5) for starts in (False, True)]
    return [2.0, 1.0, 1e-5, 50, 500, *by_law, *renyi]


def _subsampled() -> Numbers:
    found = _of("subsampled_gaussian", q=0.01, sigma=1.0, steps=1000, delta=1e-5)
    return [0.01, 1.0, 1000, 1e-5, found["epsilon"]]


def _advanced() -> Numbers:
    found = _of("advanced_composition", epsilon=0.1, delta=0.0, k=100, delta_prime=1e-7)
    return [0.1, 100, 1e-7, found["epsilon"], homogeneous(0.1, 100, 1e-7)]


def _decor() -> Numbers:
    return [*PRINTED, *(exact_of(printed)[1] for printed in PRINTED)]


def _pair_leaks(graph: nx.Graph) -> Numbers:
    of = graph_of_edges(graph.number_of_nodes(), list(graph.edges))
    noise, gone = ((1.0, 3.0), (0.5, 10.0)), ((), (0, 1))
    return [float(np.nanmax(pair_leaks(of, *sigmas, without))) for sigmas in noise for without in gone]


def _slack() -> Numbers:
    """Return the own variance over the least, at the slack of 10 % that the guide speaks of."""
    graph = graph_of_edges(8, list(nx.complete_graph(8).edges))
    return [(pair_noise(graph, 1.0, 0.1).sigma / own_sigma(1.0, 8)) ** 2]


def _pair_errors() -> Numbers:
    more = _slack()[0]
    return [more, 10, math.sqrt(more), math.sqrt(2.0 * more)]


def _broken() -> Numbers:
    """Check what is said of rings and dense graphs, and return the shares: who colludes, and 4-regular that break."""
    n, share = 1000, 10
    gone = n * share // 100
    random = np.random.Generator(np.random.Philox(key=1))
    dense = nx.random_regular_graph(2 * round(math.log(n)), n, seed=1)
    placed = [[random.choice(n, count, replace=False) for _ in range(20)] for count in (gone, n // 3)]
    assert all(_least(nx.cycle_graph(n), one) == 1 for one in placed[0])
    assert all(_least(dense, one) > n // 2 for one in placed[1])
    lonely = (n - gone) * math.prod((gone - k) / (n - 1 - k) for k in range(4))
    return [share, round(100.0 * (1.0 - math.exp(-lonely)))]


def _least(graph: nx.Graph, gone: Any) -> int:
    left = graph.subgraph(set(graph.nodes) - set(gone.tolist()))
    return min(map(len, nx.connected_components(left)))


def _dither(bits: int) -> Numbers:
    return [_SCALE_BITS - bits]


def _roster() -> Numbers:
    users = 4000
    return [round(ENTRY_BYTES * users * users / 1e9), users]


def _piece() -> list[float]:
    return [frame_size(PIECE_BYTES) / 2**20]


def _seat() -> Numbers:
    users, degree = 10_000, 10
    return [ENTRY_BYTES, seat_size(users, 1 + degree) / 1024, users, degree]


def _colluders() -> Numbers:
    """Return the number of runs of the sample that the page shows."""
    sweep = tomllib.loads((TOP / "deploy" / "samples" / "sweeps" / "colluders.toml").read_text())
    sizes = [len(values) for section in sweep["grid"].values() for values in section.values()]
    return [sweep["seeds"] * math.prod(sizes)]


def _readings() -> Numbers:
    ends = [1.0, 1.0, 5.0, 5.0]
    words = [reading_of(end + shift, 1e-6) for end, shift in zip(ends, (-1e-9, 0.0, 0.0, 1e-9), strict=True)]
    assert words == ["strong", "moderate", "moderate", "weak"]
    return ends


def _python() -> Numbers:
    asked = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["requires-python"]
    return [float(asked.removeprefix(">="))]


def _epsilon_most() -> Numbers:
    """Return the whole number below which every sample of the README's table is."""
    most = max(float(cells[2]) for cells in readme.rows().values())
    return [math.ceil(most)]


_N: Final = r"([\d,]+(?:\.\d+)?(?:e[−-]?\d+)?)"
_POWER: Final = r"2[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+"
_RAISED: Final = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_TWO: Final = f"{_N} and {_N}"
_FIVE: Final = f"{_N}, {_N}, {_N}, {_N} and {_N}"


_SCALE_BITS: Final = round(math.log2(SCALE))  # of a dither, in steps


def _limit(words: str, number: float) -> Said:
    return Said("limits", rf"\| {words} \| {_N} \|", lambda: [number])


def _silences() -> Numbers:
    """Return, in patiences, when a peer counts as silent and is excluded: asked once more, with two looks between."""
    stretched = (1.0 + STRETCH_MAX) / 2.0
    return [1, 2, 2.25, *[stretched, stretched + 1.25] * 2]


def _following() -> list[float]:
    """Return the exact squared mu on a path of three users, as a fraction, and the printed one."""
    path = neighbour_means(make_graph(GraphPart("path"), 3, 0))
    exact = Fraction(told_following(path, 2, 0, 1, np.array(CURVED))).limit_denominator(1000)
    return [exact.numerator, exact.denominator, round(float(told(path, 2, 0)[1]), 12)]


SAID: Final = (
    Said("README", rf"Python {_N} or newer", _python),
    Said("README", rf"Epsilon below {_N} is strong protection, from {_N} to {_N} moderate, above {_N} weak", _readings),
    Said("accounting", rf"true {_N}Δ²/σ², added up {_N}\)", _repeats),
    Said("accounting", rf"n = 100: {_N}\)", lambda: [mean_inverse_gap(100)]),
    Said("accounting", rf"opposite nodes: 1 against {_N}\)", _ring_of_16),
    Said("accounting", rf"grid of {_N} × {_N}, T = {_N}: {_N} against {_N}\)", _grid_ranks),
    Said("accounting", rf"with η = {_N} \(κ = {_N}\)", lambda: [ETA, KAPPA_AUTO]),
    Said("accounting", "σ of Gaussian noise for .ε, δ., Δ = 1: " + "; ".join([rf"\({_N}, {_N}\) {_N}"] * 3), _sigmas),
    Said("accounting", r"ε for .σ, δ.: " + "; ".join([rf"\({_N}, {_N}\) {_N}"] * 2), _epsilons),
    Said("accounting", "simple and tight: " + "; ".join([rf"\({_N}, {_N}, {_N}\) {_N} and {_N}"] * 2), _renyi),
    Said("accounting", r"Clones .ε₀, n, δ.: " + "; ".join([rf"\({_N}, {_N}, {_N}\) {_N}"] * 2), _clones),
    Said(
        "accounting", "Network shuffling as printed.*? and `[^`]*`: "
        + "; ".join([rf"\({_N}, {_N}\) {_N} and {_N}"] * 2),
        _network_shuffling,
    ),
    Said(
        "accounting", r"Ring histogram .ε₀, L, n, δ., lower and upper: "
        + "; ".join([rf"\({_N}, {_N}, {_N}, {_N}\) \[{_N}, {_N}\]"] * 2), _ring_histograms,
    ),
    Said("accounting", rf"\[FMTT18\] is kept where it is less, and beyond {_N} hops", lambda: [STEPS_MAX]),
    Said(
        "accounting", rf"σ = {_N}, clip {_N}, δ = {_N}\), other users and the one who starts: n = {_N}, T = {_N}: "
        rf"{_N} and {_N}, by Rényi divergences {_N} and {_N}", _exposed,
    ),
    Said("accounting", rf"zero-out .q, σ, steps, δ.: \({_N}, {_N}, {_N}, {_N}\) {_N}", _subsampled),
    Said("accounting", rf"Advanced composition \({_N}, k = {_N}, δ' = {_N}\): {_N}; \[KOV15\]: {_N}", _advanced),
    Said("accounting", rf"E\[1/Geom\(1/n\)\], n = 100: {_N}", lambda: [mean_inverse_gap(200)]),
    Said("accounting", rf"the own variance is {_N} of that", _slack),
    Said("accounting", rf": {_FIVE} are {_FIVE} by the exact curve", _decor),
    Said("accounting", rf"= \(1, 3\): {_TWO}; \(0.5, 10\): {_TWO}", partial(_pair_leaks, nx.cycle_graph(8))),
    Said("accounting", rf"Complete graph of 8: {_TWO}; {_TWO}", partial(_pair_leaks, nx.complete_graph(8))),
    Said("accounting", rf"Star of 6, centre 0: {_TWO}; {_TWO}", partial(_pair_leaks, nx.star_graph(5))),
    Said("epsilon", rf"every n − 1 = {_N} hops", lambda: [demo_spec().run.nodes - 1]),
    Said("learning", rf"at up to {_N} places", lambda: [PLACES_MAX]),
    Said("learning", rf"the mean over {_N} users at most", lambda: [curves.USERS_MAX]),
    Said("learning", rf"over the first {_N} trials", lambda: [COMPARED_MAX]),
    Said("gossip", rf"a grid of ({_POWER}) steps.*?dithers of ({_POWER}) steps.*?dither: ({_POWER}) .*?of ({_POWER})\.",
         lambda: [SHORT_BITS, _SCALE_BITS, _SCALE_BITS - SHORT_BITS, _SCALE_BITS - REACH_BITS]),
    Said("gossip", rf"would take a dither of ({_POWER})", lambda: [_SCALE_BITS - 31]),
    Said("limits", rf"in most of {_N} random placements", lambda: [PLACEMENTS]),
    Said("limits", rf"masks {_N} placements.*?graphs of at most {_N} users", lambda: [TRIED, COMPONENT_MAX]),
    Said("limits", rf"has not heard of {_N} at a time", lambda: [POKES_MAX]),
    Said("limits", rf"ask again within\n  {_N} seconds", lambda: [RETRY_MAX_S]),
    Said("limits", rf"at most {_N} contributions in all", lambda: [CONTRIBUTIONS_MAX]),
    Said("limits", rf"after {_N} times its mean time between visits.*?complete {_N} \+ n.*?visited {_N} times",
         lambda: [GAPS_MIN, GAPS_MIN, VISITS_MIN]),
    _limit("users", USERS_MAX),
    _limit("contributions on a ring", RING_MAX),
    _limit("contributions on a random walk", WALK_MAX),
    _limit("tokens on random walks", TOKENS_MAX),
    _limit("rounds of gossip", ROUNDS_MAX),
    _limit("rounds of learning by gossip, in all", LEARNING_MAX),
    _limit("activations of `gossip.randomized`", ACTIVATIONS_MAX),
    _limit("rounds of shuffling", RELAYS_MAX),
    Said("limits", rf"a user gets {_N} bytes for each.*?a frame of {_N} KiB\namong {_N} users at degree {_N}", _seat),
    Said("limits", rf"Of more than {_N} users in gossip", lambda: [HELD_MAX]),
    Said("limits", rf"all users, so\nenrolment costs O\(n²\) bytes in all: {_N} GB for {_N} users", _roster),
    Said("pairwise", rf"costs some {_N} % of accuracy", lambda: [round(100.0 * (math.sqrt(_slack()[0]) - 1.0))]),
    Said("pairwise", rf"when {_N} % collude.*?in some {_N} % of the placements", _broken),
    Said("pairwise", rf"√\({_N} n/h\) with Gaussian ones at {_N} % slack: {_N} to {_N} for up to half", _pair_errors),
    Said("papers", rf"three graphs of {_N} users", lambda: [DECOR_USERS]),
    Said("papers", rf"squared μ is {_N}/{_N}, and the printed formula gives {_N}", _following),
    Said("papers", rf"one column of a paper, {_N} inches.*?{_N} inches", lambda: list(WIDTHS_IN.values())),
    Said("running", rf"Every sample is at epsilon {_N} or less", _epsilon_most),
    Said("running", rf"needs Python {_N} or newer", _python),
    Said("running", rf"time \| {_N} \| {_N}, at most {_N}.*?most {_N} \| at most {_N}.*?most {_N} \| at most {_N}",
         _silences),
    Said("running", rf"answer each \| {_N} \| {_N} \|.*?up to {_N} frames each \| {_N} \| {_N} \|",
         lambda: [QUESTIONS.per_s, QUESTIONS.burst, BURST_MAX, RESENDS.per_s, RESENDS.burst]),
    Said("running", rf"came before, one answer each \| {_N} \| {_N} \|", lambda: [REPEATS.per_s, REPEATS.burst]),
    Said("running", rf"about silence \| {_N} \| {_N} \|", lambda: [WRONG.per_s, WRONG.burst]),
    Said("running", rf"to the curator \| {_N} \| {_N} \|", lambda: [MESSAGES.per_s, MESSAGES.burst]),
    Said("architecture", rf"too long for a frame of {_N} MiB", _piece),
    Said("changelog", rf"too long for a frame of {_N} MiB", _piece),
    Said("running", rf"their bytes \| {_N} MiB \| {_N} MiB", lambda: [BYTES.per_s / 2**20, BYTES.burst / 2**20]),
    Said("running", rf"at most {_N} frames at a time", lambda: [FRAMES_A_TURN]),
    Said("shuffling", rf"an overlap of {_N}\.", lambda: [KAPPA_AUTO]),
    Said("sweep", rf"simulates and audits {_N} runs", _colluders),
    Said("views", rf"noise of about ({_POWER}) of the largest state", partial(_dither, REACH_BITS)),
    Said("views", rf"a dither of about ({_POWER}) of the largest model", partial(_dither, MODEL_BITS)),
    Said("walks", rf"with probability {_N} at most", lambda: [CHANCE]),
    Said("web", r"not larger than (\d+) users and (\d+) links", lambda: (USERS_SHOWN, LINKS_SHOWN)),
    Said("web", rf"Of {_N} connections.*?have {_N} at.*?have {_N} places.*?for {_N} seconds, or of a stream for {_N}",
         lambda: [HTTP_MAX, ANSWERS_MAX, FEEDS_MAX, SLOW_S, FEED_SLOW_S]),
    Said("web", r"loaded again every (\d+) seconds", lambda: (RELOAD_S,)),
)  # fmt: skip

HELD: Final = (
    Held("accounting", r"at most 25 % above", "tests/privacy/linear/test_krylov.py", ("1.25 * exact",)),
    Held("accounting", r"σ/grid is at least 2²⁰|users stay below 2⁶¹ steps", "tests/mechanisms/test_grid.py",
         ("2**20 <= scale / step", "magnitude_max / step < 2**61")),
    Held("limits", r"at least 2²⁰ steps per standard deviation", "tests/mechanisms/test_grid.py",
         ("2**20 <= scale / step",)),
    Held("views", r"√\(steps · numbers\) · 2⁻²²", "tests/protocols/walk/analysis/test_iteration.py",
         ("math.sqrt(plan.length * plan.descent.dimension) * 2.0**-22",)),
    Held("architecture", r"Frames above 16 KiB", "tests/crypto/test_channel.py", ("== {size > 16384}",)),
    Held("changelog", r"frames above 16 KiB", "tests/crypto/test_channel.py", ("== {size > 16384}",)),
    Held("security", r"frames above 16 KiB", "tests/crypto/test_channel.py", ("== {size > 16384}",)),
    Held("accounting", r"Bits are exact to 2⁻⁶⁴", "tests/mechanisms/test_rows.py", ("Fraction(1, 2**64)",)),
    Held("epsilon", r"\| less than 2\.7 times \|.*?delta above 0\.001", "tests/contracts/test_guide_numbers.py",
         ("math.exp(1.0)", "math.exp(5.0)", "0.0011")),
    Held("gossip", r"could be more than 1 % is refused", "tests/protocols/gossip/test_averaging.py", ("< 1.01",)),
    Held("gossip", r"at most 1 % of the standard error", "tests/protocols/gossip/analysis/test_forecast.py", ("1.01",)),
    Held("accounting", r"suite is 1e−6 with fixed seeds", "tests/scenarios/test_claims_under_attack.py", ("1e-6",)),
)  # fmt: skip

GENERATED: Final = ("spec", "messages", "states")
"""Pages that are made from the code; tests/files/test_reference*.py and tests/contracts/test_states.py compare them."""

_MEASURED: Final = "a measurement, with its date and kind of machine"
EXEMPT: Final = (
    Exempt("", r"\[[A-Z]+\d+[a-z]?(?:, [^\]]*)?\]", "a citation"),
    Exempt("", r"Theorems? [\d. and]+|Lemma [\d.]+|Corollar\w+ [\d to]+|Table \d", "a place in a paper"),
    Exempt("", r"n − 1 (?:hops|others|users)", "a formula"),
    Exempt("README", r"\| `\w+` \| `\w+\.\w+` \|[^\n]*", "each row is recomputed by tests/runs/test_plan.py"),
    Exempt("README", r"Apache-2\.0", "the name of a licence"),
    Exempt("accounting", r"this is 300 lines with a proof", "roughly the length of a file"),
    Exempt("accounting", r"from 2¹⁴ slots|below 2⁻¹⁰⁰⁰ up to scales of 2⁵³", "proved in `mechanisms/discrete.py`"),
    Exempt("accounting", r"modulo 2⁶⁴", "the size of a machine word"),
    Exempt("accounting", r"10⁷ draws", "how tests/mechanisms/test_discrete.py goes about it"),
    Exempt("accounting", r"in 700 bits|at 11 scales", "how tests/mechanisms/test_discrete.py goes about it"),
    Exempt("accounting", r"δ = δ₂ = 5e−7", "what is given"),
    Exempt("changelog", r"## \d+\.\d+\.\d+ \([\d-]+\)", "tests/files/test_citation.py compares it with the package"),
    Exempt("limits", r"2\.0\.11|MQTT 3\.1\.1", "versions of other software"),
    Exempt("limits", r"1e-5 to 1e-4 as a rule", "a range of what each run's claims say for themselves"),
    Exempt("references", r".*", "titles and years of works"),
    Exempt("running", r"7 to 8 MiB each \(measured in November 2026[^)]*\)", _MEASURED),
    Exempt("running", r"some 25 MiB each \(likewise\)", _MEASURED),
    Exempt("running", r"before Python 3\.13", "a version of other software"),
    Exempt("running", r"10,000 of them in 10 processes", "an example of a choice"),
    Exempt("views", r"Measured in November 2026 with 6 processes.*?\n\n", _MEASURED),
    Exempt("views", r"\| \d \| \d \| [a-z ]+ \| [\d., ]+ \| \d+ \|", "the same measurement"),
)  # fmt: skip

_UNITS: Final = (
    "%|times|[MGK]i?B|seconds?|minutes?|hours?|ms|ns|bytes|bits|lines|users|nodes|rounds|hops|steps|connections|draws|"
    "processes|placements|contributions|tokens|activations|cores|inches|runs|rows|numbers|neighbours|scales"
)
_NUMBER: Final = r"(?<![\w.,^/\[])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
CLAIM: Final = re.compile(
    rf"{_NUMBER}(?= ?(?:{_UNITS})\b| ?%)|(?<![\w.])\d+\.\d+|(?i:epsilon)(?: of| is| below| above| at| from)? {_NUMBER}"
    rf"|{_NUMBER}e[−-]\d+|(?<![\w²])\d+⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]{{2,}}"
)
"""A number with a unit, with a decimal point or an exponent, or of an epsilon."""


def pages() -> dict[str, str]:
    """Return the README and the pages of the guide that people wrote, by name."""
    found = {path.stem: path.read_text() for path in sorted(FOLDER.glob("*.md")) if path.stem not in GENERATED}
    return {"README": (TOP / "README.md").read_text(), **found}


def flowing(pattern: str) -> re.Pattern[str]:
    """Compile a pattern so that a blank in it stands for a line break too."""
    return re.compile(pattern.replace(" ", r"\s+"), re.DOTALL)


def numbers_in(found: re.Match[str]) -> list[str]:
    return [_in_ascii(group) for group in found.groups()]


def _in_ascii(number: str) -> str:
    """Write a number of a page as `float` takes it; of a power of two the exponent."""
    power = re.fullmatch(_POWER, number)
    return number.removeprefix("2").translate(_RAISED) if power else number.replace(",", "").replace("−", "-")


def same(text: str, value: float) -> bool:
    """Whether a printed number is the value, rounded to as many digits as it has."""
    digits, _, power = text.partition("e")
    unit = 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
    return abs(float(text) - value) <= max(0.5000001 * unit, 1e-10 * abs(value))


def unsaid(name: str, text: str) -> list[str]:
    """Return what is claimed on a page and stands in no list, each with its line."""
    covered = [flowing(one.pattern) for one in (*SAID, *HELD) if one.page == name]
    exempt = [flowing(one.pattern) for one in EXEMPT if one.page in ("", name)]
    rest = re.sub(r"(?ms)^```.*?^```", _blank, text)
    for pattern in (*covered, *exempt, re.compile(r"`[^`]*`")):
        rest = pattern.sub(_blank, rest)
    return [f"{name}:{rest.count(chr(10), 0, found.start()) + 1}: {found[0]}" for found in CLAIM.finditer(rest)]


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])
