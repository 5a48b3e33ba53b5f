"""Claims about a run that happened: verified evidence in, claims and refusals out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p2pdp.accounting.gaussian_curve import epsilons_of
from p2pdp.audit.exact import ExactAuditor, Leaks
from p2pdp.audit.local import local_claim
from p2pdp.core.claims import Claim, Refusal
from p2pdp.core.errors import Refused, UsageError
from p2pdp.core.ids import CURATOR, Peer
from p2pdp.ledger.records import Contents
from p2pdp.mechanisms import gaussian
from p2pdp.mechanisms.clipping import Bounds
from p2pdp.mechanisms.grid import Grid
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.transcript import Transcript, replay

Floats = npt.NDArray[np.float64]

EXACT = "exact"
_PUBLIC_ROUTE = "the observer is taken to know the realised path, schedule and graph"
_HYPOTHETICAL = "hypothetical: noise and routing came from a seed"
_ROUNDED_UP = 1.0 + 1e-12  # more than the sums behind a leak can be off
_NOT_AT_HAND = "its ledger is not whole or not at hand"
_PASSED_THROUGH = "what it saw passed through users whose ledgers are not at hand"
_FAST = "the fast sampler's floating-point noise is treated as ideal"


@dataclass(frozen=True)
class Audit:
    """The claims, and for those who want them all pairs; `mu` is indexed [user, observer]."""

    claims: list[Claim]
    refusals: list[Refusal]
    mu: Floats | None
    leak: Floats | None
    epsilon: Floats | None
    mu_coalition: Floats | None
    leak_coalition: Floats | None


def audit_run(
    run: RunPlan, views: dict[Peer, Contents], incomplete: Sequence[Peer], delta: float, colluders: Sequence[Peer]
) -> Audit:
    """Claims of a verified run. Observers in `incomplete` are refused by name, for their rows are not all here."""
    if not 0.0 < delta < 1.0:
        raise UsageError("delta must be between 0 and 1")
    _check_colluders(run, colluders)
    transcript = replay(run, views)
    local = local_claim(run, transcript, incomplete, delta, _assumptions(run, transcript)[1:])
    refusals: list[Refusal] = []
    if run.plan.noise.name not in ("gaussian", "none"):
        reason = f"{run.plan.noise.name} noise has no exact Gaussian leak"
        refusals = [Refusal(observer, EXACT, reason) for observer in ("node", "curator", "public", "network")]
        audit = Audit([local] if isinstance(local, Claim) else [], refusals, None, None, None, None, None)
    else:
        audit = _exact(run, transcript, incomplete, delta, colluders)
        audit.claims.extend([local] if isinstance(local, Claim) else [])
    audit.refusals.extend([local] if isinstance(local, Refusal) else [])
    if not audit.claims:
        raise Refused("; ".join(f"{refusal.observer}: {refusal.reason}" for refusal in audit.refusals))
    return audit


def _check_colluders(run: RunPlan, colluders: Sequence[Peer]) -> None:
    if len(set(colluders)) != len(colluders) or any(not 0 <= user < run.n for user in colluders):
        raise UsageError(f"colluders must be distinct user numbers from 0 to {run.n - 1}")
    if colluders and len(colluders) >= run.n:
        raise UsageError("somebody must be left whom the colluders could learn about")


def sensitivity_of(run: RunPlan) -> float:
    """How far replacing one value of a user can move a contribution, in grid units, rounded up."""
    if run.spec.data.clip is None:  # a category, which moves one count to another
        return math.nextafter(math.sqrt(2.0), 2.0)
    return Grid(run.plan.grid_exponent).sensitivity(Bounds(*run.spec.data.clip), run.dimensions)


def _assumptions(run: RunPlan, transcript: Transcript) -> list[str]:
    listed = [_PUBLIC_ROUTE]
    if run.plan.noise.name in ("gaussian", "laplace"):
        bits = math.log2(run.plan.noise.scale)
        listed.append(f"discrete noise with sigma = 2^{bits:.1f} grid steps is treated as continuous")
    if run.sampler == "seeded":
        listed.append(_HYPOTHETICAL)
    elif run.sampler == "fast":
        listed.append(_FAST)
    listed += [f"user {user}, whose ledger is not whole, followed the protocol" for user in sorted(transcript.rebuilt)]
    return listed


class _Claims:
    """Turns leaks into claims at one delta."""

    def __init__(self, run: RunPlan, transcript: Transcript, delta: float) -> None:
        self._delta = delta
        self._sensitivity = sensitivity_of(run)
        self._assumptions = tuple(_assumptions(run, transcript))

    def mu(self, leaks: Floats) -> Floats:
        return self._sensitivity * np.sqrt(leaks) * _ROUNDED_UP

    def epsilons(self, mu: Floats) -> Floats:
        return epsilons_of(self._delta, mu)

    def claim(self, observer: str, mu: Floats, names: Sequence[int | str | tuple[int, ...]]) -> Claim:
        """`mu` has a column per observer, named by `names`."""
        pairs = ~np.isnan(mu)
        worst = np.unravel_index(int(np.argmax(np.where(pairs, mu, -1.0))), mu.shape)
        mu_max = float(mu[worst])
        epsilon_max = gaussian.epsilon_of(self._delta, mu_max)
        return Claim(
            observer=observer,
            unit="user",
            relation="replace",
            delta=self._delta,
            method=EXACT,
            conditioning="public",
            epsilon_max=epsilon_max,
            # Of many pairs epsilon is rounded up more coarsely than of the worst one alone.
            epsilon_mean=min(epsilon_max, float(np.mean(self.epsilons(mu)[pairs]))),
            mu_max=mu_max,
            mu_mean=min(mu_max, float(np.mean(mu[pairs]))),
            worst_pair=(int(worst[0]), names[int(worst[1])]),
            bound=True,
            violated_pairs=None,
            assumptions=self._assumptions,
        )


def _exact(
    run: RunPlan, transcript: Transcript, incomplete: Sequence[Peer], delta: float, colluders: Sequence[Peer]
) -> Audit:
    exact, claims = ExactAuditor(transcript, run.n), _Claims(run, transcript, delta)
    refusals: list[Refusal] = []
    leaks = np.full((run.n, run.n), np.nan)
    observers: list[int] = []
    for user in range(run.n):
        if user in incomplete or user not in transcript.received:
            refusals.append(Refusal("node", EXACT, f"user {user}: {_NOT_AT_HAND}"))
            continue
        found = exact.nodes([user]).values
        if found is None:
            refusals.append(Refusal("node", EXACT, f"user {user}: {_PASSED_THROUGH}"))
        else:
            leaks[:, user] = found
            observers.append(user)
    mu = claims.mu(leaks)
    made: list[Claim] = []
    if run.n > 1 and observers:
        made.append(claims.claim("node", mu[:, observers], observers))
    coalition = _coalition(exact, transcript, incomplete, colluders, refusals)
    coalition_mu = None if coalition is None else claims.mu(coalition)
    if coalition_mu is not None:
        made.append(claims.claim("coalition", coalition_mu[:, None], [tuple(colluders)]))
    roles: list[tuple[str, Leaks | None]] = [
        ("curator", None if CURATOR in incomplete else exact.curator()),
        ("public", exact.public()),
        ("network", None if incomplete else exact.network()),
    ]
    for name, role in roles:
        if role is None:
            reason = _NOT_AT_HAND if name == "curator" else "not all views are at hand"
            refusals.append(Refusal(name, EXACT, reason))
        elif role.values is None:
            refusals.append(Refusal(name, EXACT, _PASSED_THROUGH))
        else:
            made.append(claims.claim(name, claims.mu(role.values)[:, None], [name]))
    scaled, scaled_coalition = _in_sigmas(run, leaks), None if coalition is None else _in_sigmas(run, coalition)
    return Audit(made, refusals, mu, scaled, claims.epsilons(mu), coalition_mu, scaled_coalition)


def _in_sigmas(run: RunPlan, leaks: Floats) -> Floats:
    """The leak in units of one contribution's own noise, as the papers state it: all or nothing without any."""
    unit = math.inf if run.plan.noise.name == "none" else run.plan.noise.scale**2
    with np.errstate(invalid="ignore"):
        return np.where(leaks == 0.0, 0.0, leaks * unit)


def _coalition(
    exact: ExactAuditor,
    transcript: Transcript,
    incomplete: Sequence[Peer],
    colluders: Sequence[Peer],
    refusals: list[Refusal],
) -> Floats | None:
    if not colluders:
        return None
    absent = [user for user in colluders if user in incomplete or user not in transcript.received]
    if absent:
        refusals.append(Refusal("coalition", EXACT, f"user {absent[0]}: {_NOT_AT_HAND}"))
        return None
    found = exact.nodes(list(colluders)).values
    if found is None:
        refusals.append(Refusal("coalition", EXACT, _PASSED_THROUGH))
    return found
