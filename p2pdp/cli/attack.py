"""`p2pdp attack`: what one user, or the curator of network shuffling, can read out of its own view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from p2pdp.cli.options import AsJson, RunPlace, print_document, say_lacking
from p2pdp.core.claims import Observer
from p2pdp.core.errors import UsageError

if TYPE_CHECKING:
    from p2pdp.runs.attack import Attacked

_CURATOR_HEADINGS: Final = ("user", "its likeliest report", "found", "estimate")


def attack(
    place: RunPlace,
    observer: Annotated[
        str, typer.Option(metavar="V", help='The user who reads its own view.ledger, or "curator" of shuffling.')
    ],
    target: Annotated[int | None, typer.Option(metavar="U", help="Shows this user only.")] = None,
    as_json: AsJson = False,
) -> None:
    """Shows what one user can decode from its own view."""
    from p2pdp.runs.attack import attack as decode

    found = decode(place, _observer(observer), target, on_lack=say_lacking)
    if as_json:
        print_document(found.to_json())
    else:
        _show(found)


def _observer(text: str) -> int | str:
    if text == Observer.CURATOR:
        return text
    try:
        return int(text)
    except ValueError:
        raise UsageError(f'--observer {text}: must be a user number, or "curator"') from None


def _show(found: Attacked) -> None:
    from p2pdp.cli.tables import columns

    if any("report_probability" in target for target in found.targets):
        _show_curator(found.targets)
        return
    if not found.targets:
        who = "The curator" if found.observer == Observer.CURATOR else f"User {found.observer}"
        print(f"{who} can read no contribution alone: all it saw is mixed with others and their noise.")
        return
    headings = ("user", "estimate", "off by", "off its noised value by (sigma)")
    columns([_row(target) for target in found.targets], headings)
    print("A blank means that it cannot be read, or that the targets' own ledgers are not here to compare with.")


def _show_curator(targets: list[dict[str, Any]]) -> None:
    from p2pdp.cli.tables import columns, number

    words = {True: "yes", False: "no", None: ""}
    rows = []
    for one in targets:
        found = number(one["report_probability"]), words[one["report_found"]]
        rows.append((str(one["user"]), *found, number(one["estimate"])))
    columns(rows, _CURATOR_HEADINGS)
    known = [one["report_found"] for one in targets if one["report_found"] is not None]
    if len(known) > 1:
        print(f"The likeliest report is the user's own for {sum(known)} of {len(known)} users; blind guesses find one.")
    print("An estimate is the mean of all reports, each as much as it is likely to be the user's own.")


def _row(target: dict[str, Any]) -> tuple[str, ...]:
    from p2pdp.cli.tables import number
    from p2pdp.report.page.words import users

    user = target["user"]
    name = str(user) if isinstance(user, int) else f"sum of {users(user)}"
    values = (target["estimate"], target["error"], target["noised_value_error_in_sigma"])
    return name, *("" if value is None else number(value) for value in values)
