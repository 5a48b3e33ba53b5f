"""`p2pdp account`: one published theorem or accountant. Answers are printed without tables, to be quick."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from p2pdp.cli.options import AsJson, print_columns, print_document
from p2pdp.core.errors import UsageError


def account(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="The accountant.")] = None,
    inputs: Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Its inputs.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="Lists the accountants, or with NAME its inputs.")] = False,
    as_json: AsJson = False,
) -> None:
    """Computes one published theorem or accountant."""
    if listed:
        _list(name, as_json=as_json)
        return
    if name is None:
        raise UsageError("account: the name of an accountant is missing; p2pdp account --list names them")
    from p2pdp import api
    from p2pdp.privacy.contract import read_inputs

    found = api.account(name, **read_inputs(name, inputs or []))
    if as_json:
        print_document(found.to_json())
        return
    print_columns((key, f"{value:.10g}") for key, value in found.outputs.items())
    print("a bound, if:" if found.bound else "no bound:")
    for assumption in found.assumptions:
        print(f"  {assumption}")
    print(f"source: {found.source}")


def _list(name: str | None, *, as_json: bool) -> None:
    from p2pdp.runs.account import accountants, inputs_of

    if name is None:
        known = accountants()
        if as_json:
            print_document({"accountants": known})
        else:
            print_columns((one["name"], one["help"]) for one in known)
        return
    asked = inputs_of(name)
    if as_json:
        print_document({"name": name, "inputs": asked})
    else:
        print_columns((one["name"], f"{one['help']}; {one['range']}{_otherwise(one)}") for one in asked)


def _otherwise(one: dict[str, Any]) -> str:
    if one["required"]:
        return ""
    return "; optional" if one["default"] is None else f"; {one['default']} if not given"
