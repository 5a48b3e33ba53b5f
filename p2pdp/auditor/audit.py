"""Claims about a run that happened: verified evidence in, claims and refusals out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from p2pdp.auditor.claims import added, claims_with_broker, cost_of, left_of, refusals_with_broker
from p2pdp.auditor.context import Account, AccountResult, AuditContext, Taking, nothing_ahead
from p2pdp.auditor.pairs import PairTotals
from p2pdp.core.arrays import Each, Floats, one_by_one
from p2pdp.core.claims import Claim, Conditioning, Refusal
from p2pdp.core.errors import Refused, UsageError
from p2pdp.core.ids import Peer
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.evidence import Recorded


@dataclass(frozen=True)
class Audit:
    """The claims, and for callers who want them all pairs; `mu` and `epsilon` are indexed [user, observer]."""

    claims: list[Claim]
    refusals: list[Refusal]
    mu: Floats | None
    leak: Floats | None
    epsilon: Floats | None
    epsilon_conditioning: Conditioning
    mu_coalition: Floats | None
    leak_coalition: Floats | None
    published: Floats | None = None  # the leak of each pair as a paper prints it
    variation: Floats | None = None  # total variation of each pair, given what `epsilon` is given
    epsilon_coalition: Floats | None = None
    totals: PairTotals | None = None  # in place of pairs that were not held


def audit_run(
    run: RunPlan,
    recorded: Recorded,
    incomplete: Sequence[Peer],
    delta: float,
    colluders: Sequence[Peer],
    each: Each = one_by_one,
    *,
    ahead: Taking = nothing_ahead,
    in_blocks: bool = False,
) -> Audit:
    """Return the claims of a verified run. Observers in `incomplete`, whose rows are not all here, are refused.

    `each` computes what all observers learned, but for what was begun `ahead`; with `in_blocks` pairs are not held.
    """
    if not 0.0 < delta < 1.0:
        raise UsageError("delta must be between 0 and 1")
    _check_colluders(run, colluders)
    cost = cost_of(run.spec)
    views, transcript = recorded.views, recorded.transcript
    context = AuditContext(run, views, transcript, incomplete, left_of(delta, cost), colluders, each, ahead, in_blocks)
    analysis = run.protocol.analysis()
    findings = _findings(context, analysis.accounts(), analysis.first_account)
    if any(finding.claims for finding in findings):
        findings.append(analysis.formulas(context, findings))
    claims = [added(claim, cost) for finding in findings for claim in finding.claims]
    claims = claims_with_broker(run.spec, claims)
    refusals = refusals_with_broker(run.spec, [refusal for finding in findings for refusal in finding.refusals])
    if not claims:
        raise Refused("; ".join(f"{refusal.observer}: {refusal.reason}" for refusal in refusals))
    exact = next((one for one in findings if one.mu is not None or one.totals is not None), findings[0])
    pairs, conditioning = _pairs(findings)
    epsilon, variation = pairs.epsilon, pairs.variation
    if cost is not None:
        epsilon, variation = None if epsilon is None else epsilon + cost.epsilon, None
    coalition = exact.mu_coalition, exact.leak_coalition
    pooled = exact.epsilon_coalition
    rest = (exact.published, variation, pooled if pooled is None or cost is None else pooled + cost.epsilon)
    totals = next((one.totals for one in findings if one.totals is not None), None)
    if totals is not None and cost is not None:
        totals = totals.with_cost(cost.epsilon)
    return Audit(claims, refusals, exact.mu, exact.leak, epsilon, conditioning, *coalition, *rest, totals=totals)


def _findings(context: AuditContext, accounts: Sequence[Account], first: Account | None) -> list[AccountResult]:
    """Return what each account finds. While other processes compute for the `first`, this one goes on with others."""
    found: dict[Account, AccountResult] = {}
    others = iter([account for account in accounts if account is not first])

    def meanwhile() -> None:
        account = next(others, None)
        if account is not None:
            found[account] = account(context)

    if first is not None and first in accounts:
        found[first] = first(replace(context, each=partial(context.each, meanwhile=meanwhile)))
    found |= {account: account(context) for account in others}
    return [found[account] for account in accounts]


def _pairs(findings: Sequence[AccountResult]) -> tuple[AccountResult, Conditioning]:
    """Return the account whose epsilons of pairs count: given the view if there is one, else given the public route."""
    for conditioning in (Conditioning.VIEW, Conditioning.PUBLIC):
        for finding in findings:
            if finding.epsilon is not None and any(claim.conditioning == conditioning for claim in finding.claims):
                return finding, conditioning
    return findings[0], Conditioning.PUBLIC


def _check_colluders(run: RunPlan, colluders: Sequence[Peer]) -> None:
    if len(set(colluders)) != len(colluders) or any(not 0 <= user < run.n for user in colluders):
        raise UsageError(f"colluders: must be distinct user numbers from 0 to {run.n - 1}")
    if colluders and len(colluders) >= run.n:
        raise UsageError("colluders: at least one user must not be among them; name fewer")
