"""Checks of a spec before a node enrols: what its owner has to know, and what the node refuses.

Guarantee: a spec that passes `check_accepted` asks for no more than `[accept]` allows, and `OwnData` holds rows that
fit it, read as a whole from the owner's own file. Nothing is sent to anybody from here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from p2pdp.core.claims import Unit
from p2pdp.core.errors import Refused, UsageError
from p2pdp.core.ids import Peer, is_user
from p2pdp.core.spec import REAL_DATA, DataPart, Spec
from p2pdp.core.words import unit_words
from p2pdp.crypto.roster import Roster
from p2pdp.files.checks import check, has_rows, learns, unit_vectors
from p2pdp.files.data import load_data, public_examples
from p2pdp.files.model_code import model_code
from p2pdp.files.node_config import Accept, NodeConfig
from p2pdp.files.spec import parse_spec, spec_digest
from p2pdp.files.tables import Moved
from p2pdp.mechanisms import laplace
from p2pdp.mechanisms.clipping import Bounds
from p2pdp.node.measuring import with_measures
from p2pdp.peer.credentials import Credentials
from p2pdp.protocols import protocol
from p2pdp.protocols.learning import OWN, dimension_of, has_intercept, is_built_in, is_named
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.tasks.examples import Examples
from p2pdp.tasks.named import NamedObjective
from p2pdp.tasks.unit_mixture import DIMENSIONS
from p2pdp.transports.registry import machine_names, transport_kind

_SHARED: Final = ("rule", "target_range", "standardize", "clip", "unit_norm")  # what makes a model everybody's


def spec_dimensions(spec: Spec) -> int | None:
    """Return how many numbers a value of this spec has; None where only a data file could tell."""
    if spec.data.kind == "unit_mixture":
        return DIMENSIONS
    if spec.task.kind == "histogram" or spec.data.kind not in REAL_DATA:
        return 1
    if learns(spec):
        if spec.data.columns is None or not (is_built_in(spec) or spec.task.own is not None):
            return None
        return dimension_of(spec, len(spec.data.columns) + has_intercept(spec))
    return None if spec.data.columns is None else len(spec.data.columns)


def check_can_run(spec: Spec) -> None:
    """Refuse what this version does not run across machines."""
    protocol(spec.run.protocol)
    if spec.task.kind == OWN:
        raise UsageError(
            '[task] kind: "own" runs on one machine only, where its objective is known; choose another kind'
        )
    if spec.data.is_divided:
        raise UsageError(
            "[data] partition: divides one table, and across machines each owner has its own; leave it out"
        )
    if not transport_kind(spec.run.transport).crosses_machines:
        others = " or ".join(machine_names())
        raise UsageError(f"[run] transport: machines talk over {others}, not over {spec.run.transport}")


def offered_spec(text: str) -> Spec:
    try:
        spec = parse_spec(text, None)
        check_can_run(spec)
    except UsageError as error:
        raise Refused(f"the spec that bootstrap offers cannot be run by this version: {error}") from None
    return spec


def bounds_of(spec: Spec) -> tuple[float, float] | None:
    """Return the bounds of contributions: two numbers, or for gradients a length on both sides of 0."""
    if learns(spec):
        assert spec.task.clip is not None
        return -spec.task.clip, spec.task.clip
    return spec.data.clip


def noise_words(spec: Spec, dimensions: int) -> str:
    noise = spec.noise
    sigma = protocol(spec.run.protocol).sigma(spec, dimensions)
    if noise.mechanism == "none":
        return "none at all"
    strength = f"epsilon {noise.epsilon:g} a contribution" if sigma is None else f"standard deviation {sigma:.6g}"
    return f"{noise.mechanism}, {strength}, {noise.sampler} sampler"


def describe(spec: Spec, dimensions: int, bootstrap: str) -> list[str]:
    """Return the terms of a run, for its owner to read."""
    graph, bounds = spec.graph, bounds_of(spec)
    clip = "" if bounds is None else f", clipped to [{bounds[0]:g}, {bounds[1]:g}]"
    expires = [] if spec.run.expires is None else [f"  expires {spec.run.expires}"]
    purpose = [] if spec.run.purpose is None else [f"  purpose, as bootstrap states it: {spec.run.purpose}"]
    return [
        f"bootstrap with the key {bootstrap} offers this run:",
        *purpose,
        f"  protocol {spec.run.protocol}, task {spec.task.kind}, {spec.run.min_nodes} to {spec.run.nodes} nodes",
        f"  graph {graph.kind}{'' if graph.public else ', not public'}",
        *(
            []
            if not is_named(spec)
            else [f"  model of {dimensions} numbers, by code with the digest {model_code(spec.task)}"]
        ),
        f"  noise {noise_words(spec, dimensions)}; delta {spec.privacy.delta:g}{clip}",
        *expires,
    ]


def who_reads(spec: Spec) -> str:
    """Say what handing in a skeleton tells, for the node's owner to read before its node joins."""
    if spec.audit.key is not None:
        return f"this node's skeleton will be sealed to the auditor's key {spec.audit.key}; the curator cannot open it"
    return (
        "this run names no auditor's key, so the curator can read this node's skeleton: without values, but with whom "
        "it exchanged messages and when. Claims about the curator that rest on hidden routes do not hold then"
    )


def check_accepted(spec: Spec, dimensions: int, config: NodeConfig) -> None:
    """Refuse what does not fit by the name of its entry, with what the run has and what is allowed."""
    accept, name = config.accept, f"{config.path} [accept]"
    if accept.protocols is not None and spec.run.protocol not in accept.protocols:
        allowed = ", ".join(accept.protocols) or "none"
        raise Refused(f"{name} protocols: the run's is {spec.run.protocol}, and this node takes part in {allowed} only")
    if accept.sigma_min is not None:
        sigma = protocol(spec.run.protocol).sigma(spec, dimensions)
        if sigma is None:
            raise Refused(
                f"{name} sigma_min: noise of {spec.noise.mechanism} has no standard deviation, "
                f"and this node asks for {accept.sigma_min:g}"
            )
        if sigma < accept.sigma_min:
            raise Refused(
                f"{name} sigma_min: the run's noise has sigma {sigma:.6g}, and this node asks for {accept.sigma_min:g}"
            )
    _check_unit(spec, accept, name)
    _check_noise(spec, accept, name)
    sizes: dict[str, float | None] = {**protocol(spec.run.protocol).sizes(spec), "delta": spec.privacy.delta}
    for key, of_run in sizes.items():
        most = getattr(accept, key)
        if most is not None and of_run is not None and of_run > most:
            raise Refused(f"{name} {key}: the run has {of_run:g}, and this node allows {most:g}")
    if accept.min_live is not None and spec.run.live_min < accept.min_live:
        raise Refused(
            f"{name} min_live: the run goes on with {spec.run.live_min} users left, "
            f"and this node asks for {accept.min_live}"
        )
    bounds = bounds_of(spec)
    if accept.clip is not None and bounds is not None:
        (low, high), (least, most) = bounds, accept.clip
        if not least <= low < high <= most:
            raise Refused(
                f"{name} clip: the run's bounds are [{low:g}, {high:g}], and this node allows [{least:g}, {most:g}]"
            )


def _check_unit(spec: Spec, accept: Accept, name: str) -> None:
    """Refuse a run whose costs are about less than the owner's limit is: a user's bound those of its rows."""
    unit = spec.privacy.unit
    if accept.epsilon_max is not None and unit != Unit.USER and accept.unit == Unit.USER:
        raise Refused(
            f"{name} unit: the run protects {unit_words(unit).data}, and epsilon_max is about all rows of this node; "
            f'unit = "{unit}" makes it about each of them'
        )


def _check_noise(spec: Spec, accept: Accept, name: str) -> None:
    noise = spec.noise
    if accept.mechanisms is None and noise.mechanism == "none":
        raise Refused(f'{name} mechanisms: the run adds no noise, which this node allows only if it names "none"')
    if accept.mechanisms is not None and noise.mechanism not in accept.mechanisms:
        allowed = ", ".join(accept.mechanisms) or "none of them"
        raise Refused(f"{name} mechanisms: the run's is {noise.mechanism}, and this node allows {allowed}")
    if accept.sampler == "exact" and noise.sampler != "exact":
        raise Refused(f"{name} sampler: the run's is {noise.sampler}, and this node asks for the exact one")
    if accept.epsilon is None or noise.mechanism == "none":
        return
    epsilon = _pure_epsilon(spec)
    if epsilon is None:
        raise Refused(f"{name} epsilon: {noise.mechanism} noise has no epsilon without a delta; use sigma_min instead")
    if epsilon > accept.epsilon:
        raise Refused(
            f"{name} epsilon: one contribution costs epsilon {epsilon:.6g}, and this node allows {accept.epsilon:g}"
        )


def _pure_epsilon(spec: Spec) -> float | None:
    """Return what one contribution costs at delta 0; in a vector with Laplace noise, each number by itself."""
    noise = spec.noise
    if noise.mechanism == "gaussian":
        return None
    if noise.epsilon is not None or noise.sigma is None or spec.data.clip is None:
        return noise.epsilon
    dimensions = spec_dimensions(spec) or 1
    scale = laplace.scale_of_sigma(noise.sigma)
    return laplace.epsilon_of(scale, dimensions * float(Bounds(*spec.data.clip).span))


def check_rounds(rounds: int, config: NodeConfig) -> None:
    """Check the rounds that follow from the graph, where the spec leaves them open."""
    most = config.accept.rounds
    if most is not None and rounds > most:
        raise Refused(f"{config.path} [accept] rounds: the run has {rounds}, and this node allows {most}")


@dataclass(frozen=True)
class OwnData:
    """The owner's rows; `user` gives them once the node knows its number among how many (made-up data needs it).

    `start` is the digest of where a model that the spec names starts here.
    """

    dimensions: int
    rows: int
    moved: tuple[Moved, ...] = field(repr=False)
    user: Callable[[int, Peer], Any] = field(repr=False)
    public: Examples | None = field(default=None, repr=False)
    start: str | None = None


def check_code(spec: Spec, config: NodeConfig) -> None:
    """Refuse a run whose model's code the owner has not accepted, before any of it is imported."""
    if not is_named(spec):
        return
    found, name = model_code(spec.task), f"{config.path} [accept] model"
    what = " with ".join(filter(None, (spec.task.model or spec.task.kind, spec.task.loss)))
    if config.accept.model is None:
        raise Refused(
            f'{name}: missing; the run would load {what}. Read that code, then accept it by model = "{found}"'
        )
    if config.accept.model != found:
        raise Refused(f"{name}: the digest of {what} as it is installed here is {found}, and this node accepts another")


def own_data(spec: Spec, config: NodeConfig) -> OwnData:
    """Read the node's own `[data]`, with the bounds of the spec."""
    check_code(spec, config)
    name = f"{config.path} [data]"
    if config.data.is_divided:
        raise UsageError(f"{name} partition: all rows of this file are one user's; leave it out")
    clip = spec.data.clip
    if config.data.clip is not None and config.data.clip != clip:
        bounds = "none" if clip is None else f"[{clip[0]:g}, {clip[1]:g}]"
        own = f"[{config.data.clip[0]:g}, {config.data.clip[1]:g}]"
        raise UsageError(f"{name} clip: is {own}, and the run's is {bounds}; leave it out, or keep out of this run")
    mine = replace(spec, data=replace(config.data, clip=clip))
    if learns(spec):
        mine = with_measures(replace(mine, data=_as_all(spec, config, name)))
    elif unit_vectors(spec) and has_rows(mine) and "unit_norm" not in config.given:
        mine = replace(mine, data=replace(mine.data, unit_norm=True))
    whole = config.data.kind in REAL_DATA
    try:
        check(mine, {f"data.{key}" for key in config.given})
        data = load_data(mine, 1 if whole else spec.run.nodes)
        first = data.user(0)  # what cannot be read or bounded is refused now
        public = public_examples(mine, data.dimensions)
    except UsageError as error:
        raise UsageError(f"{config.path}: {error}") from None
    if is_built_in(spec):
        _check_dimensions(spec_dimensions(spec), data.dimensions, name)
    own = mine.task.own
    return OwnData(
        data.dimensions,
        len(first),
        data.moved,
        lambda n, me: data.user(0) if whole else load_data(mine, n).user(me),
        public,
        own.known.start if isinstance(own, NamedObjective) and own.known is not None else None,
    )


def _as_all(spec: Spec, config: NodeConfig, name: str) -> DataPart:
    """Return the node's own file with features and targets as the spec makes them; column names may be its own."""
    shared = {key: getattr(spec.data, key) for key in _SHARED}
    for key, value in shared.items():
        if key in config.given and getattr(config.data, key) != value:
            raise UsageError(f"{name} {key}: is not the run's; leave it out, or keep out of this run")
    named = {key: getattr(config.data, key) for key in ("target", "columns") if getattr(config.data, key) is not None}
    theirs = {"target": spec.data.target, "columns": spec.data.columns}
    return replace(config.data, **shared, **(theirs | named))


def _check_dimensions(run: int | None, mine: int, name: str) -> None:
    if run is not None and run != mine:
        raise UsageError(f"{name} columns: these rows have {mine} numbers each, and the run's values have {run}")


def check_seat(credentials: Credentials, spec: Spec, data: OwnData, config: NodeConfig) -> None:
    """Check that the signed facts fit the spec, and that neighbours are those that the owner pinned."""
    roster = credentials.roster
    facts = dict(roster.facts)
    _check_dimensions(int(facts.get("dimensions", 0)), data.dimensions, f"{config.path} [data]")
    if is_named(spec) and facts.get("model") != model_code(spec.task):
        raise Refused("the code of the model that bootstrap signed is not the one that is installed here")
    if data.start is not None and facts.get("start") != data.start:
        raise Refused(
            "the model that is installed here does not start with the values that bootstrap signed; the same versions "
            "of it and of torch are needed on every machine"
        )
    least = spec.run.min_nodes or spec.run.nodes
    expected = (roster.n, spec.noise.sampler, spec.run.protocol, spec_digest(spec))
    if (facts.get("n"), facts.get("sampler"), roster.protocol, roster.spec_digest) != expected:
        raise Refused("the roster that bootstrap signed does not fit the spec that it offered")
    if not least <= roster.n <= spec.run.nodes:
        raise Refused(f"the roster has {roster.n} users, and the spec asks for {least} to {spec.run.nodes}")
    _check_pins(credentials, roster, config)


def check_neighbours(credentials: Credentials, run: RunPlan) -> None:
    """Check that neighbours are those of the signed graph, where it is known here: claims rest on it."""
    named = {peer for peer in credentials.peers() if is_user(peer)}
    if run.graph is not None and named != set(run.graph.neighbours[credentials.me]):
        raise Refused("the neighbours that bootstrap names are not those of the graph that it signed")


def _check_pins(credentials: Credentials, roster: Roster, config: NodeConfig) -> None:
    pins = config.accept.peers
    if pins is None:
        return
    for user in filter(is_user, credentials.peers()):
        public = roster.entry(user).identity
        if public not in pins:
            raise Refused(
                f"{config.path} [accept] peers: user {user} has the identity {public.hex()}, which is not pinned"
            )
