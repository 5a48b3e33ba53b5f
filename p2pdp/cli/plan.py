"""`p2pdp plan`: what a run would cost. Nothing starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final

import typer

from p2pdp.cli.options import AsJson, Overrides, SpecFile, naming, print_document

if TYPE_CHECKING:
    from rich.console import Console

    from p2pdp.auditor.a_priori import Tradeoff
    from p2pdp.core.spec import Spec
    from p2pdp.runs.plan import Plan
    from p2pdp.runs.target import Target
    from p2pdp.runs.units import BothUnits


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

    loaded = api.load_spec(spec, overrides or [])
    with naming(spec):
        found = api.plan(loaded, target_epsilon)
    if as_json:
        print_document(found.to_json())
    else:
        _show(found, loaded)


def _show(found: Plan, spec: Spec) -> None:
    from rich.console import Console

    from p2pdp.cli.tables import people, plain, show_claims, show_verdict

    console = Console(highlight=False)
    shown = found if found.at_target is None else found.at_target
    console.print(plain(f"{found.protocol}, {people(found.nodes)}, delta {found.delta:g}"))
    console.print("Plan only; nothing was executed.")
    for text in found.assumed:
        console.print(plain(f"Assumed: {text}."))
    _show_costs(console, found, spec)
    for warning in shown.warnings:
        console.print(plain(f"Warning: {warning}"))
    if found.target is not None:
        console.print()
        for sentence in _of_target(found, found.target, spec):
            console.print(plain(sentence), soft_wrap=sentence.startswith("--set"))
        console.print(plain(f"With {found.target.parameter} = {found.target.rounded:.6g}:"))
    show_verdict(console, shown.headline, shown.worst)
    if shown.units is not None:
        _show_units(console, shown.units)
    show_claims(console, shown.claims, shown.refusals)
    if shown.message_noise is not None:
        _show_tradeoff(console, shown.message_noise)


def _show_units(console: Console, both: list[BothUnits]) -> None:
    """Show what one record of a user loses at most, and beside it all rows of a user together."""
    from p2pdp.cli.tables import columns, number

    console.print()
    rows = [(one.observer, "not known" if one.user is None else number(one.user), number(one.record)) for one in both]
    columns(rows, ("epsilon against", "unit user", "unit record"), console)


def _show_costs(console: Console, found: Plan, spec: Spec) -> None:
    """Show the costs of the spec, and beside them those with the noise that a target takes."""
    from p2pdp.cli.tables import columns

    if found.target is None or found.at_target is None:
        columns(_rows(found), console=console)
        return
    parameter = found.target.parameter
    noise = [(parameter, _amount(getattr(spec.noise, parameter)), f"{found.target.rounded:.6g}")]
    pairs = zip(_rows(found), _rows(found.at_target), strict=True)
    rows = [(name, old, new) for (name, old), (_, new) in pairs]
    columns([*noise, *rows], ("", "as in the spec", f"for epsilon {found.target.epsilon:g}"), console)


def _amount(value: float | None) -> str:
    return "set by epsilon" if value is None else f"{value:.6g}"


def _rows(found: Plan) -> list[tuple[str, str]]:
    from p2pdp.cli.tables import number

    local, central = (found.baselines[name]["standard_error"] for name in ("local", "central"))
    return [
        ("standard error", number(found.standard_error)),
        ("standard error under local DP", number(local)),
        ("… with a trusted curator", number(central)),
        ("rounds" if found.hops is None else "hops", str(found.rounds if found.hops is None else found.hops)),
        ("messages between users", str(found.messages)),
        ("bytes", str(found.bytes)),
        ("seconds, on one machine", number(found.seconds)),
        *((fact.words, number(fact.value)) for fact in found.outlook),
    ]


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


_GAIN: Final = 0.9
_LITTLE: Final = 0.5


def _of_target(found: Plan, target: Target, spec: Spec) -> Iterator[str]:
    """Yield the noise found, how to set it, and where the gain is if it is not in the amount of noise."""
    up = target.parameter == "sigma"
    reached = f"{target.reached:.4g}"
    yield (
        f"For epsilon {target.epsilon:g} at delta {target.delta:g} against {target.against}: [noise] "
        f"{target.parameter} = {target.rounded:.6g} (then at most {reached}). Local DP would need "
        f"{_rounded(target.local_value, up=up)}."
    )
    override = target.override(spec)
    if override is None:
        yield f"In the spec, replace epsilon and delta of [noise] by this line: sigma = {target.rounded:.6g}"
    else:
        yield f"--set {override}"
    errors = _errors(found)
    if up and errors is not None and target.value > _LITTLE * target.local_value and errors[0] < _GAIN * errors[1]:
        yield (
            "A draw is not much smaller than under local DP, since somebody sees a contribution under little more than "
            f"one of them. The gain is in the result, which holds fewer draws: its standard error is {errors[0]:.4g}, "
            f"and under local DP {errors[1]:.4g}."
        )


def _errors(found: Plan) -> tuple[float, float] | None:
    """Return the standard error at the target and that under local DP, the largest of several numbers."""
    assert found.at_target is not None
    both = found.at_target.standard_error, found.at_target.baselines["local"]["standard_error"]
    own, local = (max(one) if isinstance(one, list) else one for one in both)
    return None if own is None or local is None else (own, local)


def _rounded(value: float, *, up: bool) -> str:
    from p2pdp.runs.target import rounded

    return f"{rounded(value, up=up):.6g}"
