"""The commands of first steps: `init`, `samples`, `schema`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from p2pdp.cli.options import AsJson, print_document

if TYPE_CHECKING:
    from p2pdp.files.samples import Sample

_NEXT: Final = dict.fromkeys(("node", "clinic"), "p2pdp node {file} --out DIR")
_SPEC_NEXT: Final = "p2pdp plan {file}"


def init(
    sample: Annotated[
        str | None, typer.Argument(metavar="SAMPLE", help='A sample, or "node"; without it, a list of them.')
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file to write; by default ./SAMPLE.toml.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Writes a commented spec or node configuration."""
    if sample is None:
        samples(as_json=as_json)
        return
    from p2pdp.files.samples import sample as named
    from p2pdp.files.starter import written

    chosen = named(sample)
    files = written(chosen, Path(f"{sample}.toml") if out is None else out)
    if as_json:
        print_document({"sample": sample, "files": [str(file) for file in files]})
        return
    print(f"Wrote {' and '.join(map(str, files))}. Next: {_NEXT.get(sample, _SPEC_NEXT).format(file=files[0])}")


def samples(as_json: AsJson = False) -> None:
    """Lists the samples that come with the package."""
    from p2pdp.files.samples import CLINIC, NODE, sample
    from p2pdp.files.samples import samples as known

    if as_json:
        print_document({"samples": [one.to_json() for one in known()]})
        return
    from p2pdp.cli.tables import columns

    rows = [_row(one) for one in known()]
    rows += [(name, "", "", _first_sentence(sample(name).shows)) for name in (NODE, CLINIC)]
    columns(rows, ("sample", "protocol", "users", "what it shows"))
    print("\nA copy with comments, to edit: p2pdp init SAMPLE")


def _row(one: Sample) -> tuple[str, str, str, str]:
    told = one.to_json()
    return one.name, told["protocol"], str(told["nodes"]), _first_sentence(told["shows"])


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".")


def schema(
    of: Annotated[str, typer.Option(metavar="spec|node", help="What it describes.")] = "spec",
) -> None:
    """Prints the JSON Schema of specs or of node configurations."""
    from p2pdp.files.json_schema import json_schema

    print_document(json_schema(of))
