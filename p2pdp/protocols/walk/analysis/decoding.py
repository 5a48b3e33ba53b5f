"""The attack of one user of a walk: the gaps between its visits, who must have held the token in them, and gradients.

On a ring everybody knows the holder of the token at each step. On a random walk the user knows to whom it passed
the token and from whom it came back, so a gap of one contribution has one known holder, a gap of two has two.

On a walk of descent, a single step between two models that the user saw reveals the noised gradient of that step, once
regularization is subtracted and the rate divided out; its holder is known as for any walk. If the model was projected
back into its radius the reading is off by that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from p2pdp.attacks.truths import Truths, rows_drawn
from p2pdp.core.ids import Peer
from p2pdp.core.messages import RESULT, TOKEN, TOTAL, Item
from p2pdp.ledger.records import OWN, RECEIVED, SENT, Contents, carries_message, public_message, whole_message
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk.sgd import SgdPlan
from p2pdp.protocols.walk.walking import WalkPlan


@dataclass(frozen=True)
class Visit:
    """A token came with `before` at `step` and left with `after`; step 0 is the start, before any contribution."""

    item: int
    step: int
    before: Any
    came_from: Peer | None
    after: Any
    went_to: Peer


@dataclass(frozen=True)
class Gap:
    """The sum of others' additions while a token was away; `holders` step by step, None if they are unknown."""

    total: Any
    places: list[tuple[int, int]]
    holders: list[Peer] | None


def visits_of(observer: Peer, contents: Contents) -> list[Visit]:
    """Return the visits in the order of their records.

    A token sent again elsewhere counts once, for the last receiver.
    """
    came: dict[int, tuple[int, Any, Peer | None]] = {}
    found: dict[tuple[int, int], Visit] = {}
    for record in contents.records:
        if not carries_message(record) or public_message(record).type not in (TOKEN, TOTAL):
            continue
        message = whole_message(record)
        item, step = Item(*message.fields)
        if record.kind in (SENT, OWN):
            held, before, sender = came.get(item, (0, 0, None))
            if held == step - 1:
                to = record.body.receiver if record.kind == SENT else observer
                found[item, held] = Visit(item, held, before, sender, message.value, to)
        if record.kind in (RECEIVED, OWN):
            came[item] = (step, message.value, record.body.sender if record.kind == RECEIVED else observer)
    return [found[key] for key in sorted(found)]


def contributions_of(contents: Contents) -> list[tuple[int, int]]:
    """Return item and step of each contribution of a user, in the order in which it made them."""
    return [
        tuple(public_message(record).fields)
        for record in contents.records
        if record.kind in (RECEIVED, OWN) and public_message(record).type == TOKEN
    ]


def gaps_of(plan: WalkPlan, observer: Peer, contents: Contents) -> Iterator[Gap]:
    visits = visits_of(observer, contents)
    by_item: dict[int, list[Visit]] = {}
    for visit in visits:
        by_item.setdefault(visit.item, []).append(visit)
    for item, mine in sorted(by_item.items()):
        first = mine[0]
        if first.step > 0:
            known = {1: 0} if plan.order != "ring" and plan.tokens == 1 else {}
            yield _gap(plan, item, (1, first.step - 1), first.before, known | _last(first))
        for left, back in pairwise(mine):
            known = {left.step + 1: left.went_to} | _last(back)
            yield _gap(plan, item, (left.step + 1, back.step - 1), back.before - left.after, known)
    published = next(
        (whole_message(one).value for one in contents.records if one.kind == RECEIVED and _is_result(one)), None
    )
    if published is not None and len(by_item) == plan.tokens:
        yield _after(plan, [mine[-1] for mine in by_item.values()], published)


def _is_result(record: Any) -> bool:
    return public_message(record).type == RESULT


def _last(visit: Visit) -> dict[int, Peer]:
    return {} if visit.came_from is None else {visit.step - 1: visit.came_from}


def _gap(plan: WalkPlan, item: int, steps: tuple[int, int], total: Any, known: dict[int, Peer]) -> Gap:
    places = [(item, step) for step in range(steps[0], steps[1] + 1)]
    return Gap(total, places, _holders(plan, places, known))


def _holders(plan: WalkPlan, places: list[tuple[int, int]], known: dict[int, Peer]) -> list[Peer] | None:
    if plan.order == "ring":
        return [(plan.starts[item].user + step - 1) % plan.n for item, step in places]
    holders = [known.get(step) for _, step in places]
    return None if None in holders else [holder for holder in holders if holder is not None]


def _after(plan: WalkPlan, lasts: list[Visit], published: Any) -> Gap:
    """Return the additions to all tokens after the last visits: of their totals only the sum is published."""
    total = published - sum((visit.after for visit in lasts[1:]), start=lasts[0].after)
    places = [(visit.item, step) for visit in lasts for step in range(visit.step + 1, plan.steps + 1)]
    holders: list[Peer] | None = []
    for visit in lasts:
        rest = [place for place in places if place[0] == visit.item]
        more = _holders(plan, rest, {visit.step + 1: visit.went_to})
        holders = None if holders is None or more is None else [*holders, *more]
    return Gap(total, places, holders)


def read_walk(
    run: RunPlan, observer: Peer, contents: Contents
) -> list[tuple[tuple[Peer, ...], Any, list[tuple[int, int]]]]:
    """Return the sums added between two visits of the observer, if the users who added them are known."""
    plan: WalkPlan = run.plan
    found = []
    for gap in gaps_of(plan, observer, contents):
        if gap.holders is None or observer in gap.holders or not gap.holders:
            continue
        steps = [step for _, step in gap.places]
        if plan.dummies and {1, plan.steps} & set(steps):
            continue  # it contains uniform elements, which are nobody's contributions
        users = tuple(sorted(set(gap.holders)))
        noised = plan.noise.name == "randomized_response" or any(plan.draws_at(step) for step in steps)
        if len(users) == 1 or not noised:
            found.append((users, gap.total, gap.places))
    return found


def contributions_of_visits(user: Peer, inputs: Any, contents: Contents) -> Truths:
    """Return a user's additions to tokens at its visits."""
    order = {place: number for number, place in enumerate(contributions_of(contents))}
    return {
        (visit.item, visit.step): (inputs.contribution(order[visit.item, visit.step]), visit.after - visit.before)
        for visit in visits_of(user, contents)
        if visit.step > 0
    }


Read = tuple[tuple[Peer, ...], Any, list[tuple[int, int]]]


def noised_gradient(plan: SgdPlan, before: Any, after: Any, step: int) -> Any:
    """Return the gradient of the step from one model to the other, in steps of the grid."""
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
    """Yield single steps between two models that the user saw: number, both models, and the user who took it."""
    first, last = mine[0], mine[-1]
    if first.step == 2 and plan.descent.starts_at_zero:  # else the start is no part of the folder
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


def gradients_of_visits(run: RunPlan, user: Peer, inputs: Any, contents: Contents, private: bytes) -> Truths:
    """Return a user's gradients, at the models that it had."""
    plan: SgdPlan = run.plan
    order = {place: number for number, place in enumerate(contributions_of(contents))}
    visits: list[Visit] = [one for one in visits_of(user, contents) if one.step > 0]
    rows = dict(enumerate(rows_drawn(contents, private)))

    def gradient(one: Visit) -> Any:
        number = order[one.item, one.step]
        return inputs.gradient(one.before, number, rows.get(number)) / plan.descent.step

    return {
        (one.item, one.step): (
            gradient(one),
            noised_gradient(plan, one.before, one.after, one.step),
        )
        for one in visits
    }
