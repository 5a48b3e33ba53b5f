"""`p2pdp report`: one of the two editions of a run's report, as a page for a browser or for paper."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from p2pdp.cli.options import AsJson, AuditorKey, RunPlace, print_document
from p2pdp.core.errors import UsageError


class Reader(StrEnum):
    PARTICIPANTS = "participants"
    AUDITOR = "auditor"
    OWNER = "owner"


def report(
    place: RunPlace,
    reader: Annotated[
        Reader,
        typer.Option(
            "--for",
            help="participants: what everybody who took part may read; auditor: everything, also what tells routes "
            "and, where it is known, the result without noise; owner: what it cost one node, from the node's folder.",
        ),
    ] = Reader.PARTICIPANTS,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file to write; by default in DIR, under its usual name.")
    ] = None,
    key: AuditorKey = None,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Makes the auditor's edition although ledgers are missing.")
    ] = False,
    config: Annotated[
        Path | None, typer.Option(metavar="CONFIG", help="The node's configuration, whose budget the owner is shown.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Writes a report for participants, auditor or owner.

    Those for the auditor and for an owner have mode 0600.
    """
    _check(reader, only_auditors=key is not None or allow_missing, only_owners=config is not None)
    if reader == Reader.OWNER:
        from p2pdp.runs.owners import write_owners_page

        file = write_owners_page(place, out, config)
        said = "the edition for this node's owner (mode 0600)"
    elif reader == Reader.AUDITOR:
        from p2pdp.runs.pages import write_auditors_page

        file = write_auditors_page(place, out, key, allow_missing=allow_missing)
        said = "the auditor's edition, confidential (mode 0600)"
    else:
        from p2pdp.runs.editions import write_participants_page

        file = write_participants_page(place, out)
        said = "the participants' edition; it tells no route and nothing without noise"
    if as_json:
        print_document({"file": str(file), "for": reader})
    else:
        print(f"{file}: {said}")


def _check(reader: Reader, *, only_auditors: bool, only_owners: bool) -> None:
    if only_auditors and reader != Reader.AUDITOR:
        raise UsageError("--key, --allow-missing: are for the auditor's edition (--for auditor)")
    if only_owners and reader != Reader.OWNER:
        raise UsageError("--config: is for the owner's edition (--for owner)")
