"""The rules for which keys and values of a spec go together, and the check of a spec by all of them.

`TAKEN` lists the keys of common sections that only some protocols take; each protocol names its own in `keys`.
`COMMON` holds the rules among common sections, of which `POSSIBLE` are those about their values together; a protocol's
`Options` hold the rules of its own section. Each rule names the key to change and the reason. Sizes for which a graph
kind has no graph are found when the graph is made for the real number of nodes, except sides of a grid that are given.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from typing import Final

from p2pdp.core.errors import UsageError
from p2pdp.core.installed import installed
from p2pdp.core.spec import REAL_DATA, Spec
from p2pdp.files.schema import sections_of
from p2pdp.protocols import ours, protocol
from p2pdp.protocols.options import Rules, Test
from p2pdp.tasks.named import OBJECTIVES

DATA: Final = {
    "sum": ("uniform", "normal", *REAL_DATA),
    "mean": ("uniform", "normal", "unit_mixture", *REAL_DATA),
    "histogram": ("categories", *REAL_DATA),
    "linear_regression": REAL_DATA,
    "logistic_regression": REAL_DATA,
    "torch": REAL_DATA,
    "own": REAL_DATA,
}
_UNIT_DATA: Final = ("unit_mixture", *REAL_DATA)


def mechanisms(spec: Spec) -> tuple[str, ...]:
    """Return the mechanisms that go with a task; an objective that is installed goes where the caller's own does."""
    known = protocol(spec.run.protocol).tasks
    return known.get(spec.task.kind, known.get("own", ()) if spec.task.kind in installed(OBJECTIVES) else ())


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
    """Return whether the target may be any number, and not one of two classes."""
    return has_target(spec) and spec.data.rule is None and spec.task.kind != "logistic_regression"


def from_file(spec: Spec) -> bool:
    return spec.data.kind in ("csv", "npy", "parquet")


def has_rows(spec: Spec) -> bool:
    """Return whether the data are tables of rows that somebody has."""
    return spec.data.kind in REAL_DATA


def numbers(spec: Spec) -> bool:
    return spec.task.kind in ("sum", "mean")


def unit_vectors(spec: Spec) -> bool:
    """Return whether values are directions, which need no bounds."""
    return spec.noise.mechanism == "privunit"


def histogram(spec: Spec) -> bool:
    return spec.task.kind == "histogram"


def torch(spec: Spec) -> bool:
    return spec.task.kind == "torch"


def graph_kind(*kinds: str) -> Test:
    return lambda spec: spec.graph.kind in kinds


def mechanism(*names: str) -> Test:
    return lambda spec: spec.noise.mechanism in names


def exact_pair(spec: Spec) -> bool:
    """Return whether epsilon is met together with a delta."""
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
        lambda s: bool(mechanisms(s)),
        lambda s: f"{s.run.protocol} computes {_or(tasks(s))}, not {s.task.kind}.",
    ),
    (
        "noise.mechanism",
        lambda s: s.noise.mechanism in mechanisms(s),
        lambda s: f"{s.run.protocol} with task {s.task.kind} takes {_or(mechanisms(s))}, not {s.noise.mechanism}.",
    ),
    (
        "privacy.unit",
        lambda s: s.privacy.unit in protocol(s.run.protocol).units,
        lambda s: f'{s.run.protocol} cannot protect a {s.privacy.unit} alone; leave it out, or set unit = "user".',
    ),
    (
        "data.kind",
        lambda s: s.data.kind in DATA.get(s.task.kind, REAL_DATA),
        lambda s: f"task {s.task.kind} takes {_or(DATA.get(s.task.kind, REAL_DATA))} data, not {s.data.kind}.",
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
        lambda s: not (unit_vectors(s) and has_rows(s)) or s.data.unit_norm,
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
        "run.min_live",
        lambda s: (s.run.min_live or 1) <= (s.run.min_nodes or s.run.nodes),
        lambda s: f"must not be above the {s.run.min_nodes or s.run.nodes} users with whom the run may begin.",
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
        "data.partition",
        lambda s: not s.data.is_divided or s.data.split_by is None,
        lambda _: "split_by divides the rows already; leave one of them out.",
    ),
    (
        "data.target",
        lambda s: s.data.partition != "dirichlet" or s.data.target is not None,
        lambda _: 'missing; partition "dirichlet" deals out the classes of a target.',
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

TAKEN: Final = frozenset(
    {
        "graph.changing", "graph.weights", "noise.closing", "noise.pair_sigma", "noise.share", "privacy.colluders_max",
        "task.averaging", "task.batch", "task.clip", "task.radius", "task.rate", "task.regularization", "task.rounds",
        "task.schedule", "task.test",
    }
)  # fmt: skip

_ONLY: Final[dict[str, tuple[Test, str]]] = {
    "graph.degree": (graph_kind("regular"), 'only kind "regular" has a degree.'),
    "graph.probability": (graph_kind("erdos_renyi"), 'only kind "erdos_renyi" has an edge probability.'),
    "graph.radius": (graph_kind("geometric"), 'only kind "geometric" has a radius.'),
    "graph.rows": (graph_kind("grid", "torus"), 'only kinds "grid" and "torus" have rows.'),
    "graph.columns": (graph_kind("grid", "torus"), 'only kinds "grid" and "torus" have columns.'),
    "graph.path": (graph_kind("file"), 'only kind "file" is read from an edge list.'),
    "noise.sigma": (mechanism("gaussian", "laplace"), "only gaussian and laplace noise have a standard deviation."),
    "noise.epsilon": (lambda s: s.noise.mechanism != "none", 'mechanism "none" protects nothing and has no epsilon.'),
    "noise.delta": (exact_pair, "only gaussian noise that is set by epsilon takes a delta."),
    "noise.pair_sigma": (mechanism("gaussian"), "noise of pairs goes with gaussian noise of each user's own."),
    "noise.encoding": (mechanism("randomized_response"), "only randomized_response encodes categories."),
    "data.clip": (
        lambda s: not histogram(s) and not unit_vectors(s),
        "only numbers are clipped, neither categories nor the directions that privunit reports.",
    ),
    "data.path": (from_file, 'only kinds "csv", "npy" and "parquet" are read from a file.'),
    "data.columns": (has_rows, 'only kinds "csv", "npy", "parquet" and "own" have columns.'),
    "data.header": (lambda s: s.data.kind == "csv", 'only kind "csv" has a header line.'),
    "data.separator": (lambda s: s.data.kind == "csv", 'only kind "csv" has a separator.'),
    "data.target": (has_target, "only learning has a target, and not that of a mean."),
    "data.rule": (has_target, "only learning has a target that a rule could make."),
    "data.target_range": (numeric_target, "only a numeric target has a range."),
    "data.standardize": (lambda s: has_rows(s) and learns(s), "only learning standardizes the columns of a file."),
    "data.unit_norm": (
        lambda s: has_rows(s) and (learns(s) or unit_vectors(s)),
        "only rows of files are scaled to unit length, for learning and for privunit.",
    ),
    "data.split_by": (lambda s: has_rows(s) and learns(s), "only learning splits the rows of a file by a column."),
    "data.partition": (lambda s: has_rows(s) and learns(s), "only learning divides the rows of a file in other ways."),
    "data.alpha": (lambda s: s.data.partition == "dirichlet", 'only partition "dirichlet" has an alpha.'),
    "data.column": (lambda s: s.data.partition == "by", 'only partition "by" names a column.'),
    "task.model": (torch, 'only kind "torch" has a model.'),
    "task.loss": (torch, 'only kind "torch" has a loss.'),
    "task.start": (torch, 'only kind "torch" starts at values that a seed decides.'),
    "data.public": (lambda s: has_rows(s) and learns(s), "only models that learn from rows are scored on others."),
    "task.categories": (histogram, "only a histogram has categories."),
    "task.intercept": (regression, "only regressions have an intercept."),
}

_NEEDED: Final[dict[str, tuple[Test, str]]] = {
    "graph.degree": (graph_kind("regular"), 'kind "regular" needs it.'),
    "graph.path": (graph_kind("file"), 'kind "file" needs it.'),
    "noise.epsilon": (
        lambda s: s.noise.mechanism != "none" and s.noise.sigma is None,
        "noise needs it, or a sigma where the mechanism is gaussian or laplace.",
    ),
    "noise.delta": (exact_pair, "gaussian noise set by epsilon needs it; or give sigma instead of both."),
    "data.path": (from_file, 'kinds "csv", "npy" and "parquet" need it.'),
    "data.clip": (
        lambda s: numbers(s) and not unit_vectors(s),
        "sums and means need bounds [low, high] that hold for every number.",
    ),
    "data.target": (regression, "a regression needs it."),
    "data.alpha": (lambda s: s.data.partition == "dirichlet", 'partition "dirichlet" needs it.'),
    "data.column": (lambda s: s.data.partition == "by", 'partition "by" needs it.'),
    "task.model": (torch, 'kind "torch" needs it, as "module:factory".'),
    "task.categories": (histogram, "a histogram needs their number."),
    "task.clip": (learns, "learning needs the bound of a gradient's norm."),
    "task.rounds": (takes("task.rounds"), "the number of gradients is needed."),
}


COMMON: Final = Rules(_ONLY, _NEEDED, POSSIBLE)


def rules_of(spec: Spec) -> Iterator[Rules]:
    """Yield the rules that hold for this spec."""
    yield COMMON
    options = protocol(spec.run.protocol).options
    if options is not None and isinstance(spec.options, options.part):
        yield options.rules


def why_not(spec: Spec, name: str) -> str | None:
    """Return why the key, named `section.key`, has no meaning in this spec; None where it has one."""
    if name in TAKEN and not takes(name)(spec):
        return f"only {takers(name)} can take it."
    for rules in rules_of(spec):
        if name in rules.only and not rules.only[name][0](spec):
            return rules.only[name][1]
    return None


def applies(spec: Spec, name: str) -> bool:
    """Return whether the key, named `section.key`, has a meaning in this spec."""
    return why_not(spec, name) is None


def check(spec: Spec, given: AbstractSet[str]) -> None:
    """Refuse the first impossible combination; `given` holds what the file itself said, as `section.key`."""
    _refuse_untaken(spec, given)
    for rules in rules_of(spec):
        for name, possible, why in rules.possible:
            if not possible(spec):
                raise _refusal(name, why(spec))
    for name in sorted(given):
        reason = why_not(spec, name)
        if reason is not None:
            raise _refusal(name, reason)
    for rules in rules_of(spec):
        for name, (when, reason) in rules.needed.items():
            if when(spec) and value_of(spec, name) is None:
                raise _refusal(name, f"missing; {reason}")


def _refuse_untaken(spec: Spec, given: AbstractSet[str]) -> None:
    """Refuse a key that this protocol does not take, before rules about its value."""
    for name in sorted(given & TAKEN):
        if not takes(name)(spec):
            raise _refusal(name, f"only {takers(name)} can take it.")


def value_of(spec: Spec, name: str) -> object:
    """Return the value of `section.key`; None where it was not given and has no default."""
    section, _, key = name.partition(".")
    part = getattr(spec, section, None) if section in _FIELDS else spec.options
    return None if part is None else getattr(part, sections_of(spec.run.protocol)[section].field_of(key))


_FIELDS: Final = frozenset(field.name for field in dataclasses.fields(Spec)) - {"options"}


def _refusal(name: str, why: str) -> UsageError:
    section, _, key = name.partition(".")
    return UsageError(f"[{section}] {key}: {why}")
