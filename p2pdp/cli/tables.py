"""Results and claims as people read them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from p2pdp.core.claims import Claim
    from p2pdp.report.result import Result
    from p2pdp.runs.audit import Audited

_LISTED_MAX = 6


def number(value: Any) -> str:
    """Up to four significant digits; long vectors are cut."""
    if value is None:
        return "unknown"
    if isinstance(value, list):
        shown = ", ".join(number(part) for part in value[:_LISTED_MAX])
        return f"{shown}, … ({len(value)} numbers)" if len(value) > _LISTED_MAX else shown
    if value == math.inf:
        return "infinite"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def show_result(result: Result, folder: Path) -> None:
    console = Console()
    table = Table(show_header=False, box=None, pad_edge=False)
    rows = [
        ("estimate", number(result.estimate)),
        ("standard error", number(result.standard_error)),
        ("truth", number(result.truth)),
        ("error under local DP", number(result.baselines["local"]["standard_error"])),
        ("error with a trusted curator", number(result.baselines["central"]["standard_error"])),
        ("nodes", f"{result.nodes}" + (f", missing {result.missing}" if result.missing else "")),
        ("hops, messages", f"{result.hops}, {result.messages}"),
        ("faults", ", ".join(f"{kind} {count}" for kind, count in result.faults.items()) or "none"),
        ("seed", f"{result.seed}: noise and routing come from it, so privacy claims are hypothetical"),
    ]
    if result.trials is not None:
        rows.insert(3, ("trials", str(len(result.trials))))
    for name, text in rows:
        table.add_row(f"{name}  ", text)
    console.print(f"{result.protocol}, run {result.run_id}", highlight=False)
    console.print(table, highlight=False)
    console.print(
        f"folder: {folder}   (p2pdp audit {folder} says who could have learned what)", highlight=False, soft_wrap=True
    )


def show_audit(found: Audited) -> None:
    console = Console()
    console.print(
        f"{found.protocol}, {found.nodes} users, delta {found.delta:g}, ledgers {found.verified}", highlight=False
    )
    table = Table("observer", "method", "given", "epsilon, worst", "epsilon, mean", "mu, worst", "worst pair", "bound")
    for claim in found.claims:
        table.add_row(
            claim.observer,
            claim.method,
            claim.conditioning,
            number(claim.epsilon_max),
            number(claim.epsilon_mean),
            number(claim.mu_max),
            _pair(claim),
            "yes" if claim.bound else "no",
        )
    console.print(table, highlight=False)
    for refusal in found.refusals:
        console.print(f"refused: {refusal.observer}, {refusal.method}: {refusal.reason}", highlight=False, markup=False)
    for assumption in sorted({text for claim in found.claims for text in claim.assumptions}):
        console.print(f"assumed: {assumption}", highlight=False, markup=False)


def _pair(claim: Claim) -> str:
    if claim.worst_pair is None:
        return ""
    user, observer = claim.worst_pair
    return f"user {user} to {observer}"
