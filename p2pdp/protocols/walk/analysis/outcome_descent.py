"""What a run of descent came to, read from its ledgers: who took which step, and the model without noise.

A path says for each step of a token whose contribution it is, and that user's how manieth. Where nobody was gone
round it stands in the users' own ledgers; otherwise a replay tells which contributions are in the totals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from p2pdp.assembly.outcome import Number, Outcome, Path
from p2pdp.core.arrays import Floats
from p2pdp.core.ids import Peer, is_user
from p2pdp.core.messages import TOKEN, Item
from p2pdp.core.values import GRADIENT, LinearForm
from p2pdp.ledger.records import OWN, RECEIVED, Contents, public_message
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk.sgd import SgdPlan
from p2pdp.replay.evidence import Recorded
from p2pdp.replay.rows import Layout
from p2pdp.replay.transcript import Transcript
from p2pdp.tasks.descending import Noise, Population


def gather(run: RunPlan, recorded: Recorded, found: Outcome) -> None:
    """Adds the paths to an outcome, and how often each user contributed."""
    if found.excluded:
        found.paths = _paths_of_forms(run.plan, recorded.transcript)
    else:
        found.paths = _paths_of_records(run.plan, recorded.views)
    counted: dict[Peer, int] = {}
    for path in found.paths or ():
        for user, _ in path:
            counted[user] = counted.get(user, 0) + 1
    found.counted = {user: {0: times} for user, times in sorted(counted.items())}


def _paths_of_records(plan: SgdPlan, views: Mapping[Peer, Contents]) -> list[Path] | None:
    steps: list[dict[int, tuple[Peer, int]]] = [{} for _ in range(plan.tokens)]
    for peer, contents in views.items():
        visit = 0
        for record in contents.records if is_user(peer) else ():
            if record.kind in (RECEIVED, OWN):
                message = public_message(record)
                if message.type == TOKEN:
                    item, step = Item(*message.fields)
                    steps[item][step] = (peer, visit)
                    visit += 1
    if any(len(path) != plan.steps for path in steps):
        return None
    return [[path[step] for step in sorted(path)] for path in steps]


def _paths_of_forms(plan: SgdPlan, transcript: Transcript) -> list[Path] | None:
    """From traces: what went into each total, in order."""
    layout = Layout()
    paths = []
    for total in transcript.totals:
        path = trace_of(layout, total)
        if path is None or len(path) != plan.steps:
            return None
        paths.append(path)
    return paths if len(paths) == plan.tokens else None


def trace_of(layout: Layout, form: LinearForm) -> Path | None:
    """The contributions in a form, in order; None where it has none or is no trace."""
    placed = layout.place(form)
    if len(placed) != 1:
        return None
    chain, length = next(iter(placed))
    return [(source.peer, source.number) for source in layout.chain(chain).sources[:length] if source.kind == GRADIENT]


def lanes(paths: Sequence[Path]) -> tuple[Any, Any]:
    """Users and visits, [step, token]."""
    table = np.array(paths, dtype=np.int64)
    return table[:, :, 0].T, table[:, :, 1].T


def model_along(run: RunPlan, paths: Sequence[Path], rows: Callable[[Peer], Any], noise: Noise) -> Floats:
    """The mean of the tokens' models along these paths."""
    plan: SgdPlan = run.plan
    population = Population(plan.descent, [rows(user) for user in range(run.n)])
    path, visits = lanes(paths)
    return np.asarray(population.descend(path, visits, plan.rates, noise).mean(axis=0))


def truth_of(run: RunPlan, found: Outcome, rows: Callable[[Peer], Any]) -> Number:
    """The model that the same visits would have come to without noise; None where they cannot be told."""
    if found.truth is not None:
        return found.truth
    if found.paths is None or found.published is None:
        return None
    return [float(part) for part in model_along(run, found.paths, rows, lambda _step: None)]
