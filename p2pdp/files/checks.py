"""Which keys of a spec go together: three tables and the loop over them.

`ONLY` says where a key has a meaning: given anywhere else it is refused, and the writer of effective
specs leaves it out. `NEEDED` says where a key without a default must be given. `POSSIBLE` holds what
must be true of the values together. Each entry names the key to change and says why. Sizes for
which a graph kind has no graph are found when the graph is made for the real number of nodes,
except sides of a grid that are given.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Final

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import Spec
from p2pdp.files.schema import SECTIONS

Test = Callable[[Spec], bool]

TASKS: Final = {
    "walk.sum": ("sum", "mean"),
    "walk.histogram": ("histogram",),
    "walk.sgd": ("linear_regression", "logistic_regression"),
    "gossip.average": ("mean",),
    "gossip.randomized": ("mean",),
    "gossip.sgd": ("linear_regression", "logistic_regression"),
    "shuffle.all": ("mean", "histogram"),
    "shuffle.single": ("mean", "histogram"),
}
DEFAULT_TASKS: Final = {
    "walk.sum": "sum",
    "walk.histogram": "histogram",
    "gossip.average": "mean",
    "gossip.randomized": "mean",
}
_DATA: Final = {
    "sum": ("uniform", "normal", "csv", "npy"),
    "mean": ("uniform", "normal", "csv", "npy"),
    "histogram": ("categories", "csv", "npy"),
    "linear_regression": ("csv", "npy"),
    "logistic_regression": ("csv", "npy"),
}
_MECHANISMS: Final = {
    ("walk", "sum"): ("gaussian", "laplace", "none"),
    ("walk", "mean"): ("gaussian", "laplace", "none"),
    ("walk", "histogram"): ("randomized_response", "none"),
    ("gossip", "mean"): ("gaussian", "laplace", "none"),
    ("shuffle", "mean"): ("privunit", "gaussian", "laplace", "none"),
    ("shuffle", "histogram"): ("randomized_response", "none"),
}
_SGD_MECHANISMS: Final = ("gaussian", "none")
_RANDOM_GRAPHS: Final = ("regular", "erdos_renyi", "geometric")


def family(spec: Spec) -> str:
    return spec.run.protocol.partition(".")[0]


def mechanisms(spec: Spec) -> tuple[str, ...]:
    return _MECHANISMS.get((family(spec), spec.task.kind), _SGD_MECHANISMS)


def _ring(spec: Spec) -> bool:
    return spec.walk is not None and spec.walk.order == "ring"


def _random_walk(spec: Spec) -> bool:
    return spec.walk is not None and spec.walk.order == "random"


def _ring_sum(spec: Spec) -> bool:
    return _ring(spec) and spec.run.protocol == "walk.sum"


def _learns(spec: Spec) -> bool:
    return spec.run.protocol.endswith(".sgd")


def _from_file(spec: Spec) -> bool:
    return spec.data.kind in ("csv", "npy")


def _numbers(spec: Spec) -> bool:
    return spec.task.kind in ("sum", "mean")


def _histogram(spec: Spec) -> bool:
    return spec.task.kind == "histogram"


def _randomized(spec: Spec) -> bool:
    return spec.run.protocol == "gossip.randomized"


def _graph_kind(*kinds: str) -> Test:
    return lambda spec: spec.graph.kind in kinds


def _mechanism(*names: str) -> Test:
    return lambda spec: spec.noise.mechanism in names


def _exact_pair(spec: Spec) -> bool:
    """Whether epsilon is met together with a delta."""
    return spec.noise.mechanism == "gaussian" and spec.noise.sigma is None


ONLY: Final[dict[str, tuple[Test, str]]] = {
    "graph.degree": (_graph_kind("regular"), 'only kind "regular" has a degree.'),
    "graph.probability": (_graph_kind("erdos_renyi"), 'only kind "erdos_renyi" has an edge probability.'),
    "graph.radius": (_graph_kind("geometric"), 'only kind "geometric" has a radius.'),
    "graph.rows": (_graph_kind("grid", "torus"), 'only kinds "grid" and "torus" have rows.'),
    "graph.columns": (_graph_kind("grid", "torus"), 'only kinds "grid" and "torus" have columns.'),
    "graph.path": (_graph_kind("file"), 'only kind "file" is read from an edge list.'),
    "graph.changing": (lambda s: family(s) == "gossip", "only gossip runs on changing graphs."),
    "walk.laps": (_ring, 'a random walk has hops; only order "ring" has laps.'),
    "walk.hops": (_random_walk, 'a ring has laps; only order "random" has hops.'),
    "gossip.rounds": (lambda s: not _randomized(s), "randomized gossip counts activations, not rounds."),
    "gossip.accelerated": (lambda s: not _randomized(s), "only synchronous gossip can be accelerated."),
    "gossip.activations": (_randomized, "only gossip.randomized counts activations."),
    "gossip.lambda": (lambda s: s.graph.changing, "it is assumed only where [graph] changing = true."),
    "noise.sigma": (_mechanism("gaussian", "laplace"), "only gaussian and laplace noise have a standard deviation."),
    "noise.epsilon": (lambda s: s.noise.mechanism != "none", 'mechanism "none" protects nothing and has no epsilon.'),
    "noise.delta": (_exact_pair, "only gaussian noise that is set by epsilon takes a delta."),
    "noise.closing": (_ring_sum, "only walk.sum on a ring has a closing draw."),
    "noise.share": (
        lambda s: _ring_sum(s) and s.noise.mechanism == "gaussian",
        "only walk.sum on a ring with gaussian noise can share a draw among users.",
    ),
    "noise.encoding": (_mechanism("randomized_response"), "only randomized_response encodes categories."),
    "data.clip": (lambda s: not _histogram(s), "categories are not clipped."),
    "data.path": (_from_file, 'only kinds "csv" and "npy" are read from a file.'),
    "data.columns": (_from_file, 'only kinds "csv" and "npy" have columns.'),
    "data.header": (lambda s: s.data.kind == "csv", 'only kind "csv" has a header line.'),
    "data.separator": (lambda s: s.data.kind == "csv", 'only kind "csv" has a separator.'),
    "data.target": (_learns, "only learning has a target."),
    "data.rule": (_learns, "only learning has a target that a rule could make."),
    "data.standardize": (_from_file, 'only columns of kinds "csv" and "npy" are standardized.'),
    "data.unit_norm": (_from_file, 'only rows of kinds "csv" and "npy" are scaled to unit length.'),
    "data.split_by": (_from_file, 'only kinds "csv" and "npy" have a column to split by.'),
    "task.categories": (_histogram, "only a histogram has categories."),
    "task.clip": (_learns, "gradients are clipped only in learning; values by [data] clip."),
    "task.rate": (_learns, "only learning has a rate."),
    "task.rounds": (lambda s: s.run.protocol == "gossip.sgd", "only gossip.sgd counts gradients in rounds."),
    "task.regularization": (_learns, "only learning is regularized."),
    "task.batch": (_learns, "only learning takes batches."),
    "task.test": (_learns, "only learning sets rows aside for a test."),
}

NEEDED: Final[dict[str, tuple[Test, str]]] = {
    "graph.degree": (_graph_kind("regular"), 'kind "regular" needs it.'),
    "graph.path": (_graph_kind("file"), 'kind "file" needs it.'),
    "walk.laps": (_ring, 'order "ring" needs it.'),
    "walk.hops": (_random_walk, 'order "random" needs it.'),
    "gossip.rounds": (lambda s: family(s) == "gossip" and not _randomized(s), 'give a number or "auto".'),
    "gossip.activations": (_randomized, "gossip.randomized needs it."),
    "shuffle.rounds": (lambda s: family(s) == "shuffle", 'give a number, "auto" or "mixing".'),
    "noise.epsilon": (
        lambda s: s.noise.mechanism != "none" and s.noise.sigma is None,
        "noise needs it, or a sigma where the mechanism is gaussian or laplace.",
    ),
    "noise.delta": (_exact_pair, "gaussian noise set by epsilon needs it; or give sigma instead of both."),
    "data.path": (_from_file, 'kinds "csv" and "npy" need it.'),
    "data.clip": (_numbers, "sums and means need bounds [low, high] that hold for every number."),
    "data.target": (_learns, "learning needs it."),
    "task.categories": (_histogram, "a histogram needs their number."),
    "task.clip": (_learns, "learning needs the bound of a gradient's norm."),
    "task.rounds": (lambda s: s.run.protocol == "gossip.sgd", "gossip.sgd needs the number of gradients."),
}


def _sides_fit(spec: Spec) -> bool:
    rows, columns = spec.graph.rows, spec.graph.columns
    if rows is not None and columns is not None:
        return rows * columns == spec.run.nodes
    return spec.run.nodes % (rows or columns or 1) == 0


POSSIBLE: Final[tuple[tuple[str, Test, Callable[[Spec], str]], ...]] = (
    (
        "task.kind",
        lambda s: s.task.kind in TASKS[s.run.protocol],
        lambda s: f"{s.run.protocol} computes {_or(TASKS[s.run.protocol])}, not {s.task.kind}.",
    ),
    (
        "noise.mechanism",
        lambda s: s.noise.mechanism in mechanisms(s),
        lambda s: f"{s.run.protocol} with task {s.task.kind} takes {_or(mechanisms(s))}, not {s.noise.mechanism}.",
    ),
    (
        "data.kind",
        lambda s: s.data.kind in _DATA[s.task.kind],
        lambda s: f"task {s.task.kind} takes {_or(_DATA[s.task.kind])} data, not {s.data.kind}.",
    ),
    (
        "noise.epsilon",
        lambda s: s.noise.sigma is None or s.noise.epsilon is None,
        lambda _: "sigma and epsilon both set the noise; give one of them.",
    ),
    (
        "graph.kind",
        lambda s: not _ring(s) or s.graph.kind == "ring",
        lambda s: f'[walk] order "ring" needs kind "ring", not "{s.graph.kind}".',
    ),
    (
        "graph.kind",
        lambda s: not (_random_walk(s) and s.run.protocol == "walk.histogram") or s.graph.kind == "complete",
        lambda s: f'walk.histogram with [walk] order "random" needs kind "complete", not "{s.graph.kind}".',
    ),
    (
        "graph.changing",
        lambda s: not s.graph.changing or s.graph.kind in _RANDOM_GRAPHS,
        lambda s: f'a graph of kind "{s.graph.kind}" is always the same; {_or(_RANDOM_GRAPHS)} can change.',
    ),
    (
        "graph.rows",
        _sides_fit,
        lambda s: f"rows and columns do not multiply to the {s.run.nodes} nodes of [run].",
    ),
    (
        "walk.tokens",
        lambda s: s.walk is None or not _ring(s) or s.walk.tokens <= s.run.nodes,
        lambda s: f"a ring of {s.run.nodes} users has room for one token each at most.",
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
        "transport.password_file",
        lambda s: s.transport.password_file is None or s.transport.user is not None,
        lambda _: "a password needs a user.",
    ),
    (
        "transport.certificate",
        lambda s: (s.transport.certificate is None) == (s.transport.key is None),
        lambda _: "certificate and key go together.",
    ),
)


def _or(names: tuple[str, ...]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def applies(spec: Spec, name: str) -> bool:
    """Whether the key, named `section.key`, has a meaning in this spec."""
    return name not in ONLY or ONLY[name][0](spec)


def check(spec: Spec, given: AbstractSet[str]) -> None:
    """Refuses the first impossible combination; `given` holds what the file itself said, as `section.key`."""
    for section in ("walk", "gossip", "shuffle"):
        if section == family(spec) and getattr(spec, section) is None:
            raise UsageError(f"[{section}] is missing; {spec.run.protocol} needs it.")
        if section != family(spec) and getattr(spec, section) is not None:
            raise UsageError(f"[{section}] has no meaning for {spec.run.protocol}; leave it out.")
    for name, possible, why in POSSIBLE:
        if not possible(spec):
            raise _refusal(name, why(spec))
    for name in sorted(given & ONLY.keys()):
        if not applies(spec, name):
            raise _refusal(name, ONLY[name][1])
    for name, (when, reason) in NEEDED.items():
        if when(spec) and value_of(spec, name) is None:
            raise _refusal(name, f"missing; {reason}")


def value_of(spec: Spec, name: str) -> object:
    """The value of `section.key`; None where it was not given and has no default."""
    section, _, key = name.partition(".")
    part = getattr(spec, section)
    return None if part is None else getattr(part, SECTIONS[section].field_of(key))


def _refusal(name: str, why: str) -> UsageError:
    section, _, key = name.partition(".")
    return UsageError(f"[{section}] {key}: {why}")
