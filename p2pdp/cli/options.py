"""Arguments and options that several commands share, and how a document is printed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

SpecFile = Annotated[Path, typer.Argument(metavar="SPEC", help="The spec: a TOML file.")]
RunPlace = Annotated[Path, typer.Argument(metavar="DIR", help="A run's folder, or a file made by export.")]
RunFolder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a run.")]
OutFolder = Annotated[Path | None, typer.Option(help="Output folder; by default ./p2pdp-RUN_ID.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Overrides an entry of the spec; repeatable."),
]
TraceWire = Annotated[
    bool, typer.Option("--trace-wire", help="Writes what each received frame contained, without values, to wire.jsonl.")
]
AuditorKey = Annotated[
    Path | None,
    typer.Option("--key", metavar="FILE", help="The auditor's key, if skeletons are sealed to it."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Prints one JSON document and nothing else on standard output.")]


def print_document(document: Any) -> None:
    from p2pdp.files.folder import to_json

    print(to_json(document))
