"""`attack`: read what an observer can out of its own `view.ledger`, and compare it with the truth.

The attack is given the observer's view and what is public. Only afterwards the targets' own ledgers are opened, if they
are at hand, and only to say how far off it was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from p2pdp.attacks.decoding import Reading, readings_of
from p2pdp.attacks.truths import Truths
from p2pdp.auditor.context import sensitivity_of
from p2pdp.core.claims import Observer
from p2pdp.core.draws import Mechanism
from p2pdp.core.errors import Refused, UsageError
from p2pdp.core.ids import CURATOR, Peer
from p2pdp.files.folder import read_evidence
from p2pdp.files.reading import in_folder
from p2pdp.files.tables import read_edge_list
from p2pdp.ledger.stored import bytes_of
from p2pdp.protocols.learning import is_built_in
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.evidence import Evidence
from p2pdp.report.display import Shown
from p2pdp.runs.audit import signed_graph
from p2pdp.runs.collector import undisturbed
from p2pdp.runs.in_order import OnLack, check_in_order
from p2pdp.topology.graphs import Graph, is_public, make_graph


@dataclass(frozen=True, repr=False)
class Attacked(Shown):
    """The result of an attack. Each of `targets` has user (a list where only a sum is known), estimate, and its error.

    For the curator each has two more: how probably the likeliest report is the user's, and whether it is.
    """

    observer: int | str
    targets: list[dict[str, Any]]

    def to_json(self) -> dict[str, Any]:
        return {"observer": self.observer, "targets": self.targets}

    def _said(self) -> list[str]:
        read = sum(one["estimate"] is not None for one in self.targets)
        return [f"observer {self.observer}, {read} of {len(self.targets)} values or sums read; to_frame() lists them"]

    def _rows(self) -> tuple[list[dict[str, Any]], None]:
        return self.targets, None


@undisturbed()
def attack(place: str | Path, observer: int | str, target: Peer | None = None, *, on_lack: OnLack = None) -> Attacked:
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
    check_in_order(evidence, on_lack)
    run = evidence.run
    if curator and not run.protocol.analysis().curator_reads:
        found = run.protocol.analysis().guess(run, contents, evidence, lambda: _graph(run, evidence, Path(place)))
        return Attacked(observer, [one for one in found if target in (None, one["user"])])
    run = _with_public_graph(run, evidence, Path(place))
    readings = readings_of(run, peer, contents)
    if target is not None:
        readings = [reading for reading in readings if target in reading.users]
    targets = [_document(run, reading, evidence) for reading in readings]
    if target is not None and not targets:
        targets = [{"user": target, "estimate": None, "error": None, "noised_value_error_in_sigma": None}]
    return Attacked(observer, targets)


def _with_public_graph(run: RunPlan, evidence: Evidence, place: Path) -> RunPlan:
    """Add a public graph that came from a file, if it is at hand; an attack that needs it says so where it is not."""
    part = run.spec.graph
    if part.kind != "file" or not is_public(part):
        return run
    graph = _from_file(run, evidence, place)
    return run if graph is None else replace(run, graph=graph)


def _from_file(run: RunPlan, evidence: Evidence, place: Path) -> Graph | None:
    """Return the signed graph that came from a file: as ledgers have it, or from that file if the folder holds it."""
    known = signed_graph(evidence.roster, {user: evidence.contents(user) for user in evidence.begun})
    part = run.spec.graph
    if known is not None or part.path is None:
        return known
    return make_graph(part, run.n, 0, read_edge_list(in_folder(place, part.path)))


def _graph(run: RunPlan, evidence: Evidence, place: Path) -> Graph:
    """Return the graph made again from the spec, which has to be the one that was signed."""
    part = run.spec.graph
    graph = _from_file(run, evidence, place) if part.kind == "file" else make_graph(part, run.n, run.spec.run.seed or 0)
    if graph is None:
        raise Refused("the attack of the curator needs the graph, which the folder does not hold")
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
        **(_swapped(run, error) if run.by_record else {}),
    }


def _swapped(run: RunPlan, error: Any) -> dict[str, Any]:
    """Return what a likelihood test says of one row that may have been swapped, by an observer who knows all the rest.

    It compares the data as they were with the same data in which one row was moved as far as a row can be, towards the
    value that was read. `row_told` says whether the true ones are found likelier; for noise that is symmetric about 0
    these are the nearer ones. It is None where the true value is not known.
    """
    moved = sensitivity_of(run)
    told = None if error is None else bool(np.linalg.norm(np.atleast_1d(error)) < moved / 2.0)
    return {"row_moved": moved * 2.0**run.plan.grid_exponent, "row_told": told}


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
    if values is None or not is_built_in(run.spec):  # its gradients are unknown: no code is here
        return None
    inputs = run.protocol.inputs_again(run.plan, values)
    return run.protocol.analysis().truths(run, user, inputs, contents, bytes_of(private))
