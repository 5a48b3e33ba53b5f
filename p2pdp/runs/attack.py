"""`attack`: read what an observer can out of its own `view.ledger`, and compare it with the truth.

The attack is given the observer's view and what is public. Only afterwards the targets' own ledgers are opened, if they
are at hand, and only to say how far off it was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from p2pdp.attacks.decoding import Reading, readings_of
from p2pdp.attacks.truths import Truths
from p2pdp.core.claims import Observer
from p2pdp.core.draws import Mechanism
from p2pdp.core.errors import Refused, UsageError
from p2pdp.core.ids import CURATOR, Peer
from p2pdp.files.folder import read_evidence
from p2pdp.files.tables import read_edge_list
from p2pdp.protocols.learning import OWN
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.evidence import Evidence
from p2pdp.runs.collector import undisturbed
from p2pdp.topology.graphs import Graph, is_public, make_graph


@dataclass(frozen=True)
class Attacked:
    """The result of an attack. Each of `targets` has user (a list where only a sum is known), estimate, and its error.

    For the curator each has two more: how probably the likeliest report is the user's, and whether it is.
    """

    observer: int | str
    targets: list[dict[str, Any]]

    def to_json(self) -> dict[str, Any]:
        return {"observer": self.observer, "targets": self.targets}


@undisturbed()
def attack(place: str | Path, observer: int | str, target: Peer | None = None) -> Attacked:
    """Attack others from the view of `observer`, which is a user, or "curator"."""
    evidence = read_evidence(Path(place), sealed_too=False)
    n = evidence.roster.n
    curator = observer == Observer.CURATOR
    for option, user in (("--observer", None if curator else observer), ("--target", target)):
        if user is not None and not (isinstance(user, int) and 0 <= user < n):
            raise UsageError(f"{option} {user}: the run has users 0 to {n - 1}")
    if observer == target:
        raise UsageError(f"--target {target}: an observer knows its own value")
    peer = CURATOR if curator else int(observer)
    contents = evidence.chained(peer)
    if contents is None or contents.skeleton:
        who = "the curator" if curator else f"user {observer}"
        raise UsageError(f"{place}: the view.ledger of {who} is not there, and a skeleton holds no values")
    run = evidence.run
    if curator:
        found = run.protocol.analysis().guess(run, contents, evidence, lambda: _graph(run, evidence))
        return Attacked(observer, [one for one in found if target in (None, one["user"])])
    run = _with_public_graph(run)
    readings = readings_of(run, peer, contents)
    if target is not None:
        readings = [reading for reading in readings if target in reading.users]
    targets = [_document(run, reading, evidence) for reading in readings]
    if target is not None and not targets:
        targets = [{"user": target, "estimate": None, "error": None, "noised_value_error_in_sigma": None}]
    return Attacked(observer, targets)


def _with_public_graph(run: RunPlan) -> RunPlan:
    """Add a public graph that came from a file, if that file is where the spec says."""
    part = run.spec.graph
    if part.kind != "file" or not is_public(part) or part.path is None:
        return run
    try:
        edges = read_edge_list(Path(part.path))
    except UsageError:  # on another machine; an attack that needs the graph says so
        return run
    return replace(run, graph=make_graph(part, run.n, 0, edges))


def _graph(run: RunPlan, evidence: Evidence) -> Graph:
    """Return the graph made again from the spec, which has to be the one that was signed."""
    part = run.spec.graph
    try:
        edges = read_edge_list(Path(part.path)) if part.kind == "file" and part.path else None
    except UsageError:
        raise Refused("the attack of the curator needs the graph, whose file is not where the spec says") from None
    graph = make_graph(part, run.n, run.spec.run.seed or 0, edges)
    if graph.digest.hex() != dict(evidence.roster.facts).get("graph"):
        raise Refused("the graph made from the spec is not the one that this run took place on")
    return graph


def _document(run: RunPlan, reading: Reading, evidence: Evidence) -> dict[str, Any]:
    step = 2.0**run.plan.grid_exponent
    truths = [_truths(run, user, evidence) for user in reading.users]
    error = noised_error = None
    if all(truth is not None for truth in truths):
        known: dict[tuple[int, int], tuple[Any, Any]] = {}
        for truth in truths:
            known |= truth or {}
        pairs = [known[place] for place in reading.places if place in known]
        if len(pairs) == len(reading.places):
            error = (reading.total - sum(value for value, _ in pairs)) / reading.times
            noised_error = (reading.total - sum(noised for _, noised in pairs)) / reading.times
            noised_error = _in_sigmas(run.plan.noise, noised_error)
    return {
        "user": reading.users[0] if len(reading.users) == 1 else list(reading.users),
        "estimate": _number(reading.total / reading.times * step),
        "error": None if error is None else _number(error * step),
        "noised_value_error_in_sigma": None if noised_error is None else _number(noised_error),
    }


def _in_sigmas(noise: Mechanism, error: Any) -> Any:
    """Return the error in standard deviations; None where contributions carry no noise that has one."""
    deviation = {"gaussian": noise.scale, "laplace": noise.scale * 2.0**0.5}.get(noise.name)
    return error / deviation if deviation else None


def _number(value: Any) -> float | list[float]:
    return [float(part) for part in value] if hasattr(value, "__len__") else float(value)


def _truths(run: RunPlan, user: Peer, evidence: Evidence) -> Truths | None:
    """Return a user's contributions by item and step, without and with noise; None without both its ledgers."""
    contents, private = evidence.chained(user), evidence.private.get(user)
    if contents is None or contents.skeleton or not private:
        return None
    values = evidence.inputs(user)
    if values is None or run.spec.task.kind == OWN:  # a folder does not hold the objective, so gradients are unknown
        return None
    inputs = run.protocol.inputs_again(run.plan, values)
    return run.protocol.analysis().truths(run, user, inputs, contents, private)
