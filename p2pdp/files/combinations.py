"""What must be true of the values of common sections together, and the predicates that the rules are made of.

Each entry of `POSSIBLE` names the key to change and the reason. Rules of a protocol's own section are in its `Options`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from p2pdp.core.spec import Spec
from p2pdp.protocols import ours, protocol
from p2pdp.protocols.options import Test

DATA: Final = {
    "sum": ("uniform", "normal", "csv", "npy"),
    "mean": ("uniform", "normal", "unit_mixture", "csv", "npy"),
    "histogram": ("categories", "csv", "npy"),
    "linear_regression": ("csv", "npy"),
    "logistic_regression": ("csv", "npy"),
    "own": ("csv", "npy"),
}
_UNIT_DATA: Final = ("unit_mixture", "csv", "npy")


def mechanisms(spec: Spec) -> tuple[str, ...]:
    return protocol(spec.run.protocol).tasks.get(spec.task.kind, ())


def tasks(spec: Spec) -> tuple[str, ...]:
    return tuple(protocol(spec.run.protocol).tasks)


def takes(key: str) -> Test:
    """Return whether a spec's protocol takes this key of a common section by name."""
    return lambda spec: key in protocol(spec.run.protocol).keys


learns: Final = takes("task.clip")


def takers(key: str) -> str:
    """Return the names of the protocols that take this key of a common section, for errors."""
    return ", ".join(name for name in ours() if key in protocol(name).keys)


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
        "graph.changing",
        lambda s: not s.graph.changing or s.graph.kind == "erdos_renyi",
        lambda s: f'pairs of users toss coins for their edges, so kind "erdos_renyi" can change, not "{s.graph.kind}".',
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
