"""The folder of `p2pdp reproduce`: answers of pieces under `pieces/`, tables, documents and pictures beside it.

Guarantee: each file is replaced as a whole, so an interruption leaves old or new ones and never halves. An answer is
given back only where it was made of the same facts, which its digest says; a damaged one counts as missing.
"""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from p2pdp.core.errors import UsageError
from p2pdp.files.folder import disk_error, write_json, write_text


def open_folder(folder: Path) -> None:
    """Make the folder, or take an existing one: what it holds of an earlier `reproduce` is used and replaced."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UsageError(f"--out {folder}: is not a folder") from None
    except OSError as error:
        raise disk_error(f"--out {folder}", error) from None


def _piece(folder: Path, group: str, key: str) -> Path:
    return folder / "pieces" / group / f"{key}.json"


def read_piece(folder: Path, group: str, key: str, digest: str) -> dict[str, Any] | None:
    """Return the kept answer of a piece, if it is there, whole and of these facts."""
    try:
        document = json.loads(_piece(folder, group, key).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or document.get("digest") != digest:
        return None
    answer = document.get("answer")
    return answer if isinstance(answer, dict) else None


def write_piece(folder: Path, group: str, key: str, digest: str, answer: dict[str, Any]) -> None:
    place = _piece(folder, group, key)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(place.parent, error) from None
    write_json(place, {"digest": digest, "answer": answer})


def write_table(path: Path, columns: Sequence[str], rows: Sequence[Sequence[float | str]]) -> None:
    """Write a csv, with numbers that read back as they were."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    write_text(path, text.getvalue())


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Provide an empty folder for an experiment's runs, and remove it with its content afterwards."""
    with tempfile.TemporaryDirectory(prefix="p2pdp-") as place:
        yield Path(place)
