"""The content of live pages beside the state of a run: its terms in words, a public graph, an owner's limits.

All of it is for the readers that `web/page.py` names: terms and graph follow from the spec and the signed roster, and a
node's tables are for its owner alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from p2pdp.assembly.outcome import Number
from p2pdp.auditor.headline import reading_of
from p2pdp.core.claims import Unit
from p2pdp.core.spec import REAL_DATA, Spec
from p2pdp.core.words import observer_name, unit_words
from p2pdp.files.node_config import NodeConfig
from p2pdp.node.budget import BudgetLedger
from p2pdp.protocols.learning import PUBLIC_SCORES
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.report.page.words import number
from p2pdp.runs.accepting import OwnData, bounds_of, noise_words, own_data
from p2pdp.runs.budgeting import data_names
from p2pdp.runs.costing import OTHERS_SKELETONS, Cost, rests_on_others
from p2pdp.web.picture import EDGES_MAX

if TYPE_CHECKING:
    from p2pdp.runs.own_part import TookPart

Rows = list[tuple[str, object]]
_HIDDEN: Final = "The graph is not public, so it is not shown: it would tell who is central in it."
_CHANGING: Final = "Users meet others in every round, and nobody is told whom."


def offered_terms(spec: Spec, dimensions: int, n: int | None = None) -> Rows:
    """Return what is computed by whom, on what, with which noise, as a table; `n` once the roster is closed."""
    least, most = spec.run.min_nodes or spec.run.nodes, spec.run.nodes
    users = str(n) if n is not None else str(most) if least == most else f"{least} to {most}"
    graph, bounds = spec.graph, bounds_of(spec)
    data = "made up" if spec.data.kind not in REAL_DATA else "each owner's own rows"
    shape = "one number a value" if dimensions == 1 else f"{dimensions} numbers a value"
    rows: Rows = [
        ("protocol", spec.run.protocol),
        ("task", spec.task.kind),
        ("users", users),
        ("graph", f"{graph.kind}{'' if graph.public else ', not public'}{', changing' if graph.changing else ''}"),
        ("data", f"{data}, {shape}"),
        ("noise", noise_words(spec, dimensions)),
        ("privacy", f"delta {number(spec.privacy.delta)}, unit: {unit_words(spec.privacy.unit).one}"),
    ]
    if bounds is not None:
        rows.insert(5, ("clipped to", f"{bounds[0]:g} to {bounds[1]:g}"))
    if spec.run.expires is not None:
        rows.append(("expires", spec.run.expires))
    return rows


def known_of(run: RunPlan, n: int | None = None) -> dict[str, Any]:
    """Return what the page of a run knows of its terms, and of its graph once there is a roster of `n`."""
    spec = run.spec
    found: dict[str, Any] = {
        "title": f"{spec.run.protocol} among {'up to ' if n is None else ''}{run.n} users",
        "terms": offered_terms(spec, run.dimensions, n),
        "silent_after_s": spec.run.patience_s,
    }
    if n is None or run.graph is None:
        return found
    if spec.graph.changing or not spec.graph.public:
        return {**found, "no_picture": _CHANGING if spec.graph.changing else _HIDDEN}
    return {**found, "edges": tuple(islice(run.graph.edges(), EDGES_MAX + 1))}


def rows_of(costs: Sequence[Cost]) -> list[Mapping[str, Any]]:
    """Return costs as the rows of a page."""
    return [{**one.to_json(), "reading": reading_of(one.epsilon, one.delta)} for one in costs]


def limits_of_owner(config: NodeConfig, data: OwnData | None) -> list[tuple[str, Rows]]:
    """Return the tables of a node's owner: how many rows and columns, limits, and what the budget has left."""
    tables: list[tuple[str, Rows]] = []
    if data is not None:
        rows: Rows = [("rows", data.rows), ("numbers in each", data.dimensions)]
        rows += [
            (f"clipped in column {moved.column}", f"{moved.clipped} of {moved.rows} numbers") for moved in data.moved
        ]
        tables.append(("Your data", rows))
    limits = {item.name: getattr(config.accept, item.name) for item in fields(config.accept)}
    if config.accept.epsilon_max is None:
        del limits["observer"], limits["unit"]
    if limits["peers"] is not None:
        limits["peers"] = f"{len(limits['peers'])} identities"
    given: Rows = [(name, _limit(value)) for name, value in limits.items() if value is not None]
    tables.append(("[accept]: a run that asks for more is refused", given))
    return [*tables, ("[budget]: over all runs on these data", _budget(config))]


def _limit(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return observer_name(value) if isinstance(value, str) else number(value)


def _budget(config: NodeConfig) -> Rows:
    own = config.budget
    if own is None:
        return []
    spent = BudgetLedger(own.ledger, own.unit).spent(data_names(config.data))
    used = spent.epsilon_at(own.delta)
    return [
        ("limit", f"epsilon {number(own.epsilon)} at delta {number(own.delta)}"),
        *([("of", unit_words(own.unit).one)] if own.unit != Unit.USER else []),
        ("counted", f"what {observer_name(own.observer)} learns"),
        ("charged so far", f"epsilon {number(used)}"),
        ("left", f"epsilon {number(max(0.0, own.epsilon - used))}"),
    ]


def known_of_node(spec: Spec, config: NodeConfig, data: OwnData, n: int | None = None) -> dict[str, Any]:
    """Return what a node's page knows of the run that it was offered, or is in with `n` users, and of its limits."""
    return {
        "title": f"Your node in {spec.run.protocol}",
        "terms": offered_terms(spec, data.dimensions, n),
        "own": limits_of_owner(config, data),
    }


def said_of_skeletons(rests: bool) -> str:
    return f"{OTHERS_SKELETONS[0].upper()}{OTHERS_SKELETONS[1:]}." if rests else ""


def known_costs(spec: Spec, costs: Sequence[Cost]) -> dict[str, Any]:
    """Return what a node's page knows of costs before the run."""
    return {"costs": rows_of(costs), "costs_note": said_of_skeletons(rests_on_others(spec, costs))}


def _outcome(estimate: Number, error: Number, scores: Mapping[str, float | None] | None) -> Rows:
    """Return the result of a node as a table; `scores` are on the owner's own rows, and on public ones."""
    rows: Rows = [("estimate", number(estimate)), ("standard error", number(error))]
    for name, value in (scores or {}).items():
        on, what = ("public rows", name.removeprefix("public_")) if name in PUBLIC_SCORES else ("your own rows", name)
        rows.append((f"{what} on {on}", number(value)))
    return rows


def known_after(spec: Spec, config: NodeConfig, told: TookPart) -> dict[str, Any]:
    """Return what a node's page knows of its part when that is over."""
    out: Rows = [("no result", told.stopped or "bootstrap put this node out")]
    without = told.excluded or told.stopped is not None
    return {
        **known_of_node(spec, config, own_data(spec, config), told.nodes),
        **known_costs(spec, told.cost),
        "outcome": out if without else _outcome(told.estimate, told.standard_error, told.own_scores),
        "spent": rows_of(told.spent),
    }
