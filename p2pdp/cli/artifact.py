"""`p2pdp artifact`: what artifact evaluation asks for, made of a run or a sweep, and repeated."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from p2pdp.cli.options import AsJson, AuditorKey, print_document
from p2pdp.core.errors import UsageError

if TYPE_CHECKING:
    from p2pdp.runs.artifact import Artifact


def artifact(
    place: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of a run or a sweep; with --repeat an artifact.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER|FILE.zip", help="What to write; by default the folder DIR-artifact."),
    ] = None,
    auditor: Annotated[
        bool, typer.Option("--auditor", help="Adds skeletons and audit of a live run, which tell the route.")
    ] = False,
    public_data: Annotated[
        bool, typer.Option("--public-data", help="The files that a simulated run computes on are public: packs them.")
    ] = False,
    repeat: Annotated[
        bool, typer.Option("--repeat", help="Checks an artifact, repeats what it holds and compares.")
    ] = False,
    key: AuditorKey = None,
    as_json: AsJson = False,
) -> None:
    """Packs a run or a sweep for artifact evaluation, without values."""
    from p2pdp.cli.progress import count_progress
    from p2pdp.runs.artifact import make_artifact
    from p2pdp.runs.repeating import repeat_artifact

    if repeat and (out is not None or auditor or public_data or key is not None):
        raise UsageError("--repeat: an artifact is repeated as it is; leave the other options out")
    if key is not None and not auditor:
        raise UsageError("--key: opens skeletons, which only --auditor packs")
    with count_progress("repeating") as told:
        progress = None if told is None else partial(told, "")
        if repeat:
            found = repeat_artifact(place, progress)
        else:
            beside = place.parent if place.name else place.resolve().parent
            target = beside / f"{place.resolve().name}-artifact" if out is None else out
            found = make_artifact(
                place, target, auditor=auditor, public_data=public_data, key=key, clock=monotonic, progress=progress
            )
    if as_json:
        print_document(found.to_json())
    else:
        _show(found, repeated=repeat)


def _show(found: Artifact, *, repeated: bool) -> None:
    if repeated:
        print(f"{found.place}: repeated, and all {found.compared} digests are equal")
    else:
        print(f"{found.place}: {len(found.files)} files, no values; README.md says how to repeat it")
        if found.edition == "auditor":
            print("For the auditor: its skeletons tell the route that messages took. Do not publish it.")
        elif found.kind == "live":
            print("Without skeletons: readers can check the claims in advance. --auditor adds skeletons and the audit.")
    print(f"digest: {found.digest}")
