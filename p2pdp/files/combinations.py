"""What must be true of a spec's values together, and the questions about a spec that this rests on.

Each entry of `POSSIBLE` names the key to change and says why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from p2pdp.core.spec import Spec
from p2pdp.protocols import protocol

Test = Callable[[Spec], bool]

DATA: Final = {
    "sum": ("uniform", "normal", "csv", "npy"),
    "mean": ("uniform", "normal", "unit_mixture", "csv", "npy"),
    "histogram": ("categories", "csv", "npy"),
    "linear_regression": ("csv", "npy"),
    "logistic_regression": ("csv", "npy"),
    "own": ("csv", "npy"),
}
CONTRIBUTIONS_MAX: Final = 1_000_000_000
_UNIT_DATA: Final = ("unit_mixture", "csv", "npy")


def family(spec: Spec) -> str:
    return spec.run.protocol.partition(".")[0]


def mechanisms(spec: Spec) -> tuple[str, ...]:
    return protocol(spec.run.protocol).tasks.get(spec.task.kind, ())


def tasks(spec: Spec) -> tuple[str, ...]:
    return tuple(protocol(spec.run.protocol).tasks)


def ring(spec: Spec) -> bool:
    return spec.walk is not None and spec.walk.order == "ring"


def random_walk(spec: Spec) -> bool:
    return spec.walk is not None and spec.walk.order == "random"


def ring_sum(spec: Spec) -> bool:
    return ring(spec) and spec.run.protocol == "walk.sum"


def learns(spec: Spec) -> bool:
    return spec.run.protocol.endswith(".sgd")


def regression(spec: Spec) -> bool:
    return spec.task.kind in ("linear_regression", "logistic_regression")


def has_target(spec: Spec) -> bool:
    return learns(spec) and spec.task.kind != "mean"


def numeric_target(spec: Spec) -> bool:
    """Whether the target may be any number, and not one of two classes."""
    return has_target(spec) and spec.data.rule is None and spec.task.kind != "logistic_regression"


def from_file(spec: Spec) -> bool:
    return spec.data.kind in ("csv", "npy")


def numbers(spec: Spec) -> bool:
    return spec.task.kind in ("sum", "mean")


def unit_vectors(spec: Spec) -> bool:
    """Whether values are directions, which need no bounds."""
    return spec.noise.mechanism == "privunit"


def histogram(spec: Spec) -> bool:
    return spec.task.kind == "histogram"


def randomized(spec: Spec) -> bool:
    return spec.run.protocol == "gossip.randomized"


def graph_kind(*kinds: str) -> Test:
    return lambda spec: spec.graph.kind in kinds


def mechanism(*names: str) -> Test:
    return lambda spec: spec.noise.mechanism in names


def exact_pair(spec: Spec) -> bool:
    """Whether epsilon is met together with a delta."""
    return spec.noise.mechanism == "gaussian" and spec.noise.sigma is None


def _or(names: tuple[str, ...]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _sides_fit(spec: Spec) -> bool:
    rows, columns = spec.graph.rows, spec.graph.columns
    if rows is not None and columns is not None:
        return rows * columns == spec.run.nodes
    return spec.run.nodes % (rows or columns or 1) == 0


def contributions(spec: Spec) -> int:
    """Of all users to all tokens of a walk."""
    walk = spec.walk
    if walk is None:
        return 0
    steps = walk.laps * spec.run.nodes if walk.laps is not None else walk.hops or 0
    return steps * walk.tokens


POSSIBLE: Final[tuple[tuple[str, Test, Callable[[Spec], str]], ...]] = (
    (
        "task.kind",
        lambda s: s.task.kind in tasks(s),
        lambda s: f"{s.run.protocol} computes {_or(tasks(s))}, not {s.task.kind}.",
    ),
    (
        "noise.mechanism",
        lambda s: s.noise.mechanism in mechanisms(s),
        lambda s: f"{s.run.protocol} with task {s.task.kind} takes {_or(mechanisms(s))}, not {s.noise.mechanism}.",
    ),
    (
        "data.kind",
        lambda s: s.data.kind in DATA[s.task.kind],
        lambda s: f"task {s.task.kind} takes {_or(DATA[s.task.kind])} data, not {s.data.kind}.",
    ),
    (
        "data.kind",
        lambda s: not unit_vectors(s) or s.data.kind in _UNIT_DATA,
        lambda s: f"privunit reports directions: it takes {_or(_UNIT_DATA)} data, not {s.data.kind}.",
    ),
    (
        "data.kind",
        lambda s: unit_vectors(s) or s.data.kind != "unit_mixture",
        lambda s: f'unit_mixture holds directions for mechanism "privunit", not {s.noise.mechanism}.',
    ),
    (
        "data.unit_norm",
        lambda s: not (unit_vectors(s) and from_file(s)) or s.data.unit_norm,
        lambda _: "privunit reports directions; unit_norm = true scales rows to length 1.",
    ),
    (
        "noise.epsilon",
        lambda s: s.noise.sigma is None or s.noise.epsilon is None,
        lambda _: "sigma and epsilon both set the noise; give one of them.",
    ),
    (
        "graph.kind",
        lambda s: not ring(s) or s.graph.kind == "ring",
        lambda s: f'[walk] order "ring" needs kind "ring", not "{s.graph.kind}".',
    ),
    (
        "graph.kind",
        lambda s: not (random_walk(s) and s.run.protocol == "walk.histogram") or s.graph.kind == "complete",
        lambda s: f'walk.histogram with [walk] order "random" needs kind "complete", not "{s.graph.kind}".',
    ),
    (
        "graph.changing",
        lambda s: not s.graph.changing or s.graph.kind == "erdos_renyi",
        lambda s: f'pairs of users toss coins for their edges, so kind "erdos_renyi" can change, not "{s.graph.kind}".',
    ),
    (
        "graph.changing",
        lambda s: not (s.graph.changing and randomized(s)),
        lambda _: "bootstrap draws the activations of gossip.randomized on a graph that stays.",
    ),
    (
        "graph.weights",
        lambda s: not (s.graph.changing and s.graph.weights == "maxdegree"),
        lambda _: "nobody knows the largest degree of a graph that changes; metropolis, lazy and uniform need it not.",
    ),
    (
        "graph.public",
        lambda s: not (s.graph.changing and s.graph.public),
        lambda _: "of a graph that changes everybody knows its own edges only.",
    ),
    (
        "graph.rows",
        _sides_fit,
        lambda s: f"rows and columns do not multiply to the {s.run.nodes} nodes of [run].",
    ),
    (
        "walk.tokens",
        lambda s: s.walk is None or not ring(s) or s.walk.tokens <= s.run.nodes,
        lambda s: f"a ring of {s.run.nodes} users has room for one token each at most.",
    ),
    (
        "walk.tokens",
        lambda s: s.walk is None or contributions(s) <= CONTRIBUTIONS_MAX,
        lambda s: f"there are {contributions(s):,} contributions in all, and at most {CONTRIBUTIONS_MAX:,} are made.",
    ),
    (
        "run.min_nodes",
        lambda s: s.run.min_nodes is None or s.run.min_nodes <= s.run.nodes,
        lambda s: f"must not be above nodes, which is {s.run.nodes}.",
    ),
    (
        "privacy.colluders",
        lambda s: all(user < s.run.nodes for user in s.privacy.colluders),
        lambda s: f"users are numbered from 0 to {s.run.nodes - 1}.",
    ),
    (
        "privacy.colluders",
        lambda s: len(s.privacy.colluders) < s.run.nodes,
        lambda _: "somebody has to be left who does not collude.",
    ),
    (
        "data.columns",
        lambda s: s.data.kind != "npy" or all(isinstance(c, int) for c in s.data.columns or ()),
        lambda _: "columns of an npy file have numbers, counted from 0, and no names.",
    ),
    (
        "transport.certificate",
        lambda s: (s.transport.certificate is None) == (s.transport.key is None),
        lambda _: "certificate and key go together.",
    ),
)
