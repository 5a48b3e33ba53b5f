"""What descent by a random walk will tell each kind of observer: by iteration on the complete graph, else local only.

Guarantee: each claim holds a priori, over the law of the walk, for whichever user is worse off; user 0 starts a single
token, and is counted with that. On other graphs than the complete one the law of the parts between visits is not worked
out, nor for rates that change. There, and where steps may expand, what is left is the local ceiling. That nobody is
told who takes a step does not help: when messages arrive shows how often a token moved, and with two others, one of
whom is known to begin, that tells the whole path. Claims by iteration do not mind, for they average over known paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from p2pdp.audit.claims import claim_of
from p2pdp.audit.ground import Finding, Ground
from p2pdp.core.claims import Claim, Conditioning, Method, Name, Observer, Refusal
from p2pdp.core.ids import Peer
from p2pdp.privacy.iteration.walk import Exposure, epsilon
from p2pdp.privacy.rounding import beside
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk.analysis.a_priori_walks import Walks
from p2pdp.protocols.walk.analysis.iteration import terms, why_not
from p2pdp.protocols.walk.analysis.rounding import foreseen, ratio_of
from p2pdp.protocols.walk.analysis.visits import Visits
from p2pdp.protocols.walk.sgd import SgdPlan
from p2pdp.replay.transcript import Transcript

_UNIFORM: Final = "the next holder is uniform over all users, whatever the data"
_NODE: Final = "the observer sees the token at its own visits, and the result"
_NO_SECRET: Final = (
    "who takes a step is not secret enough: when messages arrive shows how often a token moved, and what that tells "
    "beside the models is not worked out"
)
_RESULT: Final = "the observer sees the model of each token"


def walk_of_descent(run: RunPlan, delta: float, colluders: Sequence[Peer], nobody_out: str) -> Finding:
    """Claims and refusals; the caller owes a random walk."""
    ground = Ground(run, {}, Transcript(), (), delta, colluders)
    found = Finding()
    observers = (Observer.NODE, Observer.CURATOR, Observer.PUBLIC)[run.n == 1 :]
    reason = why_not_in_advance(run.plan)
    for observer, watched, sees in (
        (Observer.NODE, True, _NODE),
        (Observer.CURATOR, False, _RESULT),
        (Observer.PUBLIC, False, _RESULT),
    ):
        if watched and run.n == 1:
            continue
        if reason is not None:
            found.refusals.append(Refusal(observer, Method.ITERATION, reason))
        else:
            found.claims.append(_claim(ground, observer, watched=watched, assumed=(sees, _UNIFORM, nobody_out)))
    if reason is not None and run.n > 1:
        found.refusals += [Refusal(observer, Method.HIDDEN_PATH, _NO_SECRET) for observer in observers]
    if colluders:
        pooled = "who pools views sees the token more often than is accounted for in advance: the local ceiling stands"
        found.refusals.append(Refusal(Observer.COALITION, Method.ITERATION, pooled))
    found.claims.append(Walks(ground, Visits(run, delta), nobody_out).network())
    return found


def why_not_in_advance(plan: SgdPlan) -> str | None:
    """Why nothing is claimed by iteration before the path is known."""
    if plan.order != "complete":
        return "on graphs that are not complete amplification by iteration is worked out for a known path only"
    if plan.schedule != "constant":
        return "for rates that change amplification by iteration is worked out for a known path only"
    return why_not(plan)


def _claim(ground: Ground, observer: Observer, *, watched: bool, assumed: tuple[str, ...]) -> Claim:
    run, plan = ground.run, ground.run.plan
    ratio = ratio_of(run)
    single = plan.tokens == 1
    rounding = foreseen(run)

    def known(*, starts: bool) -> float:
        exposure = Exposure(run.n, plan.steps - single, starts=starts, watched=watched)
        return beside(lambda delta: epsilon(ratio, exposure, plan.tokens, delta), ground.delta, rounding.nu)

    others = known(starts=False)
    first = known(starts=True) if single else others
    everyone = [first, *[others] * (run.n - 1)]
    worst = max(range(run.n), key=everyone.__getitem__)
    name: Name = observer if not watched else (0 if worst else 1)
    return claim_of(
        observer,
        Method.ITERATION,
        Conditioning.A_PRIORI,
        ground.delta,
        (worst, name),
        (*assumed, *terms(run), *rounding.said, *ground.assumptions),
        epsilon=(everyone[worst], sum(everyone) / run.n),
    )
