"""What a user really contributed, from its own ledgers: read after an attack, and only to say how far off it was."""

from __future__ import annotations

from typing import Any, Final

from p2pdp.attacks.descent import noised_gradient
from p2pdp.attacks.walks import Visit, contributions_of, visits_of
from p2pdp.core.ids import Peer
from p2pdp.ledger import records
from p2pdp.ledger.journal import Journal
from p2pdp.ledger.records import Contents
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk_sgd import SgdPlan

ONLY_PLACE: Final = (0, 0)  # of a user that contributes once
Truths = dict[tuple[int, int], tuple[Any, Any]]
"""By item and step: a contribution without noise and with it, in steps of the grid."""


def only_contribution(value: Any, contents: Contents, private: bytes) -> Truths:
    """Return the one contribution of a user whose first draw, if it draws anything, is its noise."""
    drawn = next((record for record in contents.records if record.kind == records.DRAWN), None)
    noise: Any = 0 if drawn is None else Journal(private=private).drawn(*drawn.body[-2:])
    return {ONLY_PLACE: (value, value + noise)}


def contributions_of_visits(user: Peer, inputs: Any, contents: Contents) -> Truths:
    """Return what a user added to tokens at its visits."""
    order = {place: number for number, place in enumerate(contributions_of(contents))}
    return {
        (visit.item, visit.step): (inputs.contribution(order[visit.item, visit.step]), visit.after - visit.before)
        for visit in visits_of(user, contents)
        if visit.step > 0
    }


def gradients_of_visits(run: RunPlan, user: Peer, inputs: Any, contents: Contents) -> Truths:
    """Return a user's gradients, at the models that it had."""
    plan: SgdPlan = run.plan
    order = {place: number for number, place in enumerate(contributions_of(contents))}
    visits: list[Visit] = [one for one in visits_of(user, contents) if one.step > 0]
    return {
        (one.item, one.step): (
            inputs.gradient(one.before, order[one.item, one.step]) / plan.descent.step,
            noised_gradient(plan, one.before, one.after, one.step),
        )
        for one in visits
    }
