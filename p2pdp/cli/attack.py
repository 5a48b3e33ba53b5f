"""`p2pdp attack`: what one user can read out of its own view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from p2pdp.cli.options import AsJson, RunPlace, print_document

if TYPE_CHECKING:
    from p2pdp.runs.attack import Attacked


def attack(
    place: RunPlace,
    observer: Annotated[int, typer.Option(metavar="V", help="The user who reads its own view.ledger.")],
    target: Annotated[int | None, typer.Option(metavar="U", help="Only what concerns this user.")] = None,
    as_json: AsJson = False,
) -> None:
    """Decodes what one user can read in its own view."""
    from p2pdp import api

    found = api.attack(place, observer, target)
    if as_json:
        print_document(found.to_json())
    else:
        _show(found)


def _show(found: Attacked) -> None:
    from p2pdp.cli.tables import columns

    if not found.targets:
        print(f"User {found.observer} can read no contribution alone: all it saw is mixed with others and their noise.")
        return
    headings = ("user", "estimate", "off by", "off its noised value by (sigma)")
    columns([_row(target) for target in found.targets], headings)
    print("A blank means that it cannot be read, or that the targets' own ledgers are not here to compare with.")


def _row(target: dict[str, Any]) -> tuple[str, ...]:
    from p2pdp.cli.tables import number

    user = target["user"]
    name = str(user) if isinstance(user, int) else "sum of " + ", ".join(map(str, user))
    values = (target["estimate"], target["error"], target["noised_value_error_in_sigma"])
    return name, *("" if value is None else number(value) for value in values)
