"""Claims by the linear account: every pair, a coalition, curator, public and network, given the realised route.

It is the account of every linear protocol with Gaussian noise that has none of its own, and the oracle of those that
have one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from p2pdp.audit.exact import ExactAuditor
from p2pdp.audit.ground import Finding, Ground
from p2pdp.audit.pair_claims import account_of_pairs
from p2pdp.audit.recorded import refused
from p2pdp.core.claims import Method, Observer
from p2pdp.replay.rows import TooLarge

Rounded = tuple[float, tuple[str, ...]]  # nu, and what it rests on

OBSERVERS: Final = (Observer.NODE, Observer.CURATOR, Observer.PUBLIC, Observer.NETWORK)
_TOO_LARGE: Final = "the run is too large to write out what everybody saw: the local ceiling stands"
_FLOATS: Final = "sums are taken to be exact: what the rounding of floats tells is left out"


def exact_account(ground: Ground, rounding: Callable[[], Rounded] | None = None) -> Finding:
    """Return the claims; `rounding` tells what the rounding of a run's numbers adds to them, where that is known."""
    run, transcript = ground.run, ground.transcript
    if transcript.models:
        return Finding()  # gradients depend on what was sent
    recorded = [own for contributions in transcript.own_noise.values() for own in contributions]
    others = {mechanism for noise in transcript.noise.values() for mechanism in noise.others}
    named = {mechanism.name for drawn in (*recorded, others) for mechanism in drawn} - {"gaussian"}
    if named:
        return refused(OBSERVERS, Method.EXACT, f"{min(named)} noise has no exact Gaussian leak")
    try:
        leaks = ExactAuditor(transcript, run.n, run.plan.unit)
    except TooLarge:
        return refused(OBSERVERS, Method.EXACT, _TOO_LARGE)
    if rounding is not None:
        nu, said = rounding()
        return account_of_pairs(ground, leaks, Method.EXACT, *said, rounding=2.0 * nu)
    return account_of_pairs(ground, leaks, Method.EXACT, *((_FLOATS,) if run.plan.unit != 1.0 else ()))
