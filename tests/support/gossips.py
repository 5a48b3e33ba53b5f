"""Specs of gossip for the rooms that judge runs, and grounds made of them."""

from __future__ import annotations

from collections.abc import Sequence

from p2pdp.auditor.context import AuditContext
from tests.support.runs import DELTA, Run


def gossip(n: int, kind: str, terms: str = "rounds = 4", *, protocol: str = "average", extra: str = "",
           noise: str = 'mechanism = "gaussian"\nsigma = 2.0') -> str:  # fmt: skip
    """`extra` goes on in the graph's section."""
    return (
        f'[run]\nprotocol = "gossip.{protocol}"\nnodes = {n}\nseed = 1\npatience_s = 3.0\n'
        f'[graph]\nkind = "{kind}"\n{extra}\n[gossip]\n{terms}\n[noise]\n{noise}\n'
        '[data]\nkind = "uniform"\nclip = [0.0, 1.0]\n[privacy]\ndelta = 1e-5\n'
    )


def context_of(run: Run, colluders: Sequence[int] = (), incomplete: Sequence[int] = ()) -> AuditContext:
    return AuditContext(run.plan, run.contents(), run.transcript(), incomplete, DELTA, colluders)
