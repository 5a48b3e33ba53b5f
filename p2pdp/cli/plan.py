"""`p2pdp plan`: what a run would cost. Nothing starts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from p2pdp.cli.options import AsJson, Overrides, SpecFile, print_document

if TYPE_CHECKING:
    from rich.console import Console

    from p2pdp.auditor.a_priori import Tradeoff
    from p2pdp.runs.plan import Plan, Target


def plan(
    spec: SpecFile,
    target_epsilon: Annotated[
        float | None,
        typer.Option(metavar="E", help="Finds the noise with which another user learns no more than epsilon E."),
    ] = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Shows before a run what it would cost; nothing is executed."""
    from p2pdp import api

    found = api.plan(api.load_spec(spec, overrides or []), target_epsilon)
    if as_json:
        print_document(found.to_json())
    else:
        _show(found)


def _show(found: Plan) -> None:
    from rich.console import Console

    from p2pdp.cli.tables import columns, number, plain, show_claims, show_verdict

    console = Console(highlight=False)
    console.print(plain(f"{found.protocol}, {found.nodes} users, delta {found.delta:g}"))
    console.print("Plan only; nothing was executed.")
    local, central = (found.baselines[name]["standard_error"] for name in ("local", "central"))
    rows = [
        ("standard error", number(found.standard_error)),
        ("standard error under local DP", number(local)),
        ("… with a trusted curator", number(central)),
        ("rounds" if found.hops is None else "hops", str(found.rounds if found.hops is None else found.hops)),
        ("messages", str(found.messages)),
        ("bytes", str(found.bytes)),
        ("seconds, on one machine", number(found.seconds)),
    ]
    columns(rows, console=console)
    for warning in found.warnings:
        console.print(plain(f"Warning: {warning}"))
    show_verdict(console, found.headline, found.worst)
    show_claims(console, found.claims, found.refusals)
    if found.message_noise is not None:
        _show_tradeoff(console, found.message_noise)
    if found.target is not None:
        console.print(plain(_of_target(found.target)))


def _show_tradeoff(console: Console, tradeoff: list[Tradeoff]) -> None:
    from p2pdp.cli.tables import columns, number, plain

    console.print(plain("Noise on messages, and how much of local DP pairs would lose if nothing is late:"))
    headings = ("message_sigma", "of sigma", "worst", "… not neighbours", "mean", "standard error")
    rows = [
        (
            number(one.message_sigma),
            f"{one.ratio:.2g}",
            number(one.leak_max),
            "" if one.leak_far_max is None else number(one.leak_far_max),
            number(one.leak_mean),
            number(one.standard_error),
        )
        for one in tradeoff
    ]
    columns(rows, headings, console)
    console.print(plain(_recommendation(tradeoff)))


def _recommendation(tradeoff: list[Tradeoff]) -> str:
    from p2pdp.auditor.a_priori import recommended

    found, without = recommended(tradeoff), tradeoff[0]
    if found is None:
        return "Every amount of noise on messages that was tried costs more than 1 % of the standard error."
    return (
        f"Recommended: message_sigma = {_rounded(found.message_sigma, up=False)}. The worst pair has then epsilon "
        f"{found.epsilon_max:.3g} instead of {without.epsilon_max:.3g}, a pair that is told the mean "
        f"{found.epsilon_mean:.3g} instead of {without.epsilon_mean:.3g}, and the standard error rises by "
        f"{100.0 * (found.standard_error / without.standard_error - 1.0):.2g} %."
    )


def _of_target(target: Target) -> str:
    """Return the noise found, rounded to the safe side: up for a sigma, down for the epsilon of a report."""
    up = target.parameter == "sigma"
    shown = _rounded(target.value, up=up)
    return (
        f"For epsilon {target.epsilon:g} at delta {target.delta:g} against {target.against}: [noise] "
        f"{target.parameter} = {shown} (then at most {target.reached:.4g}). Local DP would need "
        f"{_rounded(target.local_value, up=up)}."
    )


def _rounded(value: float, *, up: bool) -> str:
    scale = 10.0 ** (math.floor(math.log10(value)) - 5)
    steps = math.ceil(value / scale) if up else math.floor(value / scale)
    return f"{steps * scale:.6g}"
