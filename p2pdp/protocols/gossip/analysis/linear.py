"""The linear account of gossip whose recorded draws are not those of its plan; its own account relies on these."""

from __future__ import annotations

from p2pdp.audit.exact_account import Rounded, exact_account
from p2pdp.audit.ground import Finding, Ground
from p2pdp.audit.recorded import unlike_plan
from p2pdp.protocols.gossip.analysis.rounding import rounding_of
from p2pdp.protocols.gossip.analysis.views import graph_of


def linear_account(ground: Ground) -> Finding:
    if unlike_plan(ground) is None or ground.transcript.published is None:
        return Finding()

    def rounding() -> Rounded:
        found = rounding_of(ground, graph_of(ground))
        return found.nu, found.said

    return exact_account(ground, rounding)
