"""The curve on a node's own page: its own model, scored on the public rows that its owner's configuration names.

Guarantee: what is scored is in the node's own view, and the page is for its owner. Only models whose steps follow a
public schedule are followed (`Host.learned`): of a token's models it would show when they came, which is the route.

The event loop only compares a number once a second. Scoring is done by a thread of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from p2pdp.protocols.learning import Learned, loss_and_score
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.report.page.curves import OwnCurve
from p2pdp.tasks.examples import Examples

POINTS_MAX: Final = 64


class Following:
    """`tell` takes the curve whenever it is longer; `nudge` makes somebody call `work` soon, in a thread."""

    def __init__(self, tell: Callable[[OwnCurve], None]) -> None:
        self.nudge: Callable[[], None] = lambda: None
        self._tell = tell
        self._curve: OwnCurve | None = None
        self._public: Examples | None = None
        self._objective: Any = None
        self._seen: Learned | None = None

    def begin(self, run: RunPlan, public: Examples | None) -> None:
        """Take over the run; without public rows nothing is followed."""
        if public is not None and run.plan.learns:
            self._public, self._objective = public, run.plan.descent.objective

    def note(self, learned: Learned | None) -> None:
        """Take the node's own model, if a point of the curve is due."""
        if self._public is None or learned is None:
            return
        last = -1 if self._curve is None else self._curve.at[-1]
        if learned.steps > last and (learned.steps == learned.of or learned.steps - last >= learned.of // POINTS_MAX):
            self._seen = learned
            self.nudge()

    def work(self) -> None:
        """Score the model that was noted last, if that is still to be done."""
        seen, public = self._seen, self._public
        before = self._curve
        if seen is None or public is None or (before is not None and seen.steps <= before.at[-1]):
            return
        loss, score = loss_and_score(self._objective, public, seen.model)
        curve = before or OwnCurve(seen.of, seen.unit, len(public), self._objective.score_name)
        self._curve = replace(curve, at=(*curve.at, seen.steps), loss=(*curve.loss, loss), score=(*curve.score, score))
        self._tell(self._curve)
