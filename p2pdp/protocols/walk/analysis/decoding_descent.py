"""What one user can read of others' gradients from a walk of descent.

A step that lies alone between two looks at the model tells the noised gradient that took it, once regularization is
taken off and the rate divided out; whoever took it is known as for any walk. Where the model was put back into its
radius the reading is off by that.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from p2pdp.attacks.truths import Truths
from p2pdp.core.ids import Peer
from p2pdp.core.messages import RESULT
from p2pdp.ledger.records import RECEIVED, Contents, carries_message, public_message, whole_message
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk.analysis.decoding import Visit, contributions_of, visits_of
from p2pdp.protocols.walk.sgd import SgdPlan

Read = tuple[tuple[Peer, ...], Any, list[tuple[int, int]]]


def noised_gradient(plan: SgdPlan, before: Any, after: Any, step: int) -> Any:
    """Of the step that led from one model to the other, in steps of the grid."""
    pull = plan.descent.regularization * before
    return ((before - after) / plan.rate_at(step) - pull) / plan.descent.step


def read_descent(run: RunPlan, observer: Peer, contents: Contents) -> list[Read]:
    plan: SgdPlan = run.plan
    by_item: dict[int, list[Visit]] = {}
    for visit in visits_of(observer, contents):
        by_item.setdefault(visit.item, []).append(visit)
    found: list[Read] = []
    for item, mine in sorted(by_item.items()):
        for step, before, after, holder in _alone(plan, mine, _published(contents)):
            user = (plan.starts[item].user + step - 1) % plan.n if plan.order == "ring" else holder
            if user is not None and user != observer:
                found.append(((user,), noised_gradient(plan, before, after, step), [(item, step)]))
    return found


def _alone(plan: SgdPlan, mine: list[Visit], published: Any) -> Iterator[tuple[int, Any, Any, Peer | None]]:
    """Steps that stand alone between two looks: number, model before and after, and who must have taken it."""
    first, last = mine[0], mine[-1]
    if first.step == 2:
        starter = 0 if plan.tokens == 1 else first.came_from
        yield 1, plan.descent.zero(), first.before, starter
    for left, back in pairwise(mine):
        if back.step == left.step + 2:
            yield left.step + 1, left.after, back.before, back.came_from
    if plan.tokens == 1 and published is not None and last.step == plan.steps - 1:
        yield plan.steps, last.after, published, last.went_to


def _published(contents: Contents) -> Any:
    for record in contents.records:
        if record.kind == RECEIVED and carries_message(record) and public_message(record).type == RESULT:
            return whole_message(record).value
    return None


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
