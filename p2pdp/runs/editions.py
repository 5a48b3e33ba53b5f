"""The participants' edition beside the results of a run across machines: `participants.json` and `participants.html`.

It is made of the plan and of what the curator published, never of users' ledgers. The rule is that of
`report/participants.py`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from p2pdp.assembly.outcome import Outcome, estimate_of, outcome
from p2pdp.audit.beforehand import beforehand
from p2pdp.audit.ground import Finding
from p2pdp.core.claims import Conditioning, Method, Observer, Refusal
from p2pdp.core.errors import P2pdpError
from p2pdp.core.ids import CURATOR
from p2pdp.core.spec import Spec
from p2pdp.files.folder import PARTICIPANTS_FILE, PARTICIPANTS_PAGE, to_json, write_text
from p2pdp.files.skeletons import handed_in_skeletons
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.evidence import Evidence
from p2pdp.report.participants import Edition, page, sayable
from p2pdp.report.result import Circumstances

STEPS_MAX: Final = 5_000
"""Of walks whose hidden path is accounted for in the edition: seconds, where 40,000 steps take a minute."""


def published_only(run: RunPlan, evidence: Evidence) -> Outcome:
    """Return what the curator's ledger says: each total holds a contribution of every step, whoever made it."""
    found = outcome(run, evidence.recorded([CURATOR], run), [])
    found.counted = {CURATOR: {0: run.plan.length}}
    return found


def edition_of(run: RunPlan, evidence: Evidence, around: Circumstances) -> Edition:
    estimate = estimate_of(run, published_only(run, evidence))
    found = _in_advance(run)
    readable = run.spec.audit.key is None and bool(handed_in_skeletons(evidence.contents(CURATOR)))
    claims, refusals = sayable(run, found.claims, found.refusals, around.missing, readable=readable)
    return Edition(
        run_id=around.run_id,
        seeded=around.seeded,
        started=around.started,
        run=run,
        estimate=estimate.value,
        standard_error=estimate.standard_error,
        missing=around.missing,
        claims=claims,
        refusals=refusals,
    )


def save_edition(folder: Path, edition: Edition) -> None:
    write_text(folder / PARTICIPANTS_FILE, to_json(edition.to_json()) + "\n")
    write_text(folder / PARTICIPANTS_PAGE, page(edition))


def _in_advance(run: RunPlan) -> Finding:
    """Claims that hold before a run; how many values a user has is taken to be unknown unless they are made up.

    Of long walks hidden paths are left out: they would keep bootstrap from ending for minutes.
    """
    delta = run.spec.privacy.delta
    assert delta is not None
    made_up, short = _made_up(run.spec), run.plan.length <= STEPS_MAX
    try:
        found = beforehand(run, delta, run.spec.privacy.colluders, one_value=made_up and short)
    except P2pdpError as error:  # the run is done all the same
        return Finding(refusals=[Refusal(Observer.NETWORK, Conditioning.A_PRIORI, str(error))])
    if made_up and not short:
        found.refusals = [_left_out(one) if one.method == Method.HIDDEN_PATH else one for one in found.refusals]
    return found


def _left_out(refusal: Refusal) -> Refusal:
    return replace(refusal, reason=f"it takes long to work out for more than {STEPS_MAX} steps; p2pdp plan does")


def _made_up(spec: Spec) -> bool:
    return spec.data.kind not in ("csv", "npy")
