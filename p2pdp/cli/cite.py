"""`p2pdp cite`: the citation of the package."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from p2pdp.cli.options import AsJson, print_document

_TEXT: Final = "text"


def cite(
    form: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="text, bibtex or cff (Citation File Format).")
    ] = _TEXT,
    as_json: AsJson = False,
) -> None:
    """Shows how to cite p2pdp."""
    from p2pdp.files.citation import citation

    found = citation(form)
    if as_json:
        print_document({"format": form, "citation": found})
    else:
        print(found)
