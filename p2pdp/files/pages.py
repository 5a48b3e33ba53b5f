"""Say into which file a page about a run goes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from p2pdp.core.errors import UsageError
from p2pdp.files.folder import PARTICIPANTS_PAGE, REPORT_FILE, check_new_file, disk_error

_PAGE: Final = b"<!DOCTYPE html>"


def page_file(place: Path, out: Path | None, name: str) -> Path:
    """Return the file for a page about a run: the one named by `--out`, or that of this name in the run's folder."""
    if out is not None:
        check_new_file(out, "--out")
        if out.name in {REPORT_FILE, PARTICIPANTS_PAGE} - {name}:
            raise UsageError(f"--out {out}: is the name of the other edition, for others to read; name another")
        if out.exists() and not _is_page(out):
            raise UsageError(f"--out {out}: exists already and is no page; name another")
        return out
    if place.is_file():
        raise UsageError(f"{place}: is no folder to write into; name a file with --out")
    return place / name


def _is_page(file: Path) -> bool:
    """Return whether a file may be an earlier page, which another one replaces; an empty one may be."""
    try:
        with file.open("rb") as found:
            return found.read(len(_PAGE)) in (_PAGE, b"")
    except OSError as error:
        raise disk_error(f"--out {file}", error) from None
