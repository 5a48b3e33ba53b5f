"""Keeping the index of runs: while a run lives, and from folders at any time.

Guarantee: what a run does never waits for its index and never fails with it. Whenever something happened in the run's
life, its rows are made anew from its folder in a thread of its own, at most once in `REFRESH_S`. So the index follows
from ledgers and folders in one way only, and a database that was away or deleted is whole again at the next event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from p2pdp.core.errors import NotReady, P2pdpError, UsageError
from p2pdp.core.happenings import Notify, happening
from p2pdp.files.secret import make_secret_file
from p2pdp.index.store import Index, IndexBroken
from p2pdp.runs.index_facts import facts_of

REFRESH_S: Final = 2.0
INDEX_FILE: Final = "index.sqlite"
SQLITE: Final = "sqlite"
_SQLITE_FILE: Final = "sqlite:///"


def index_url(given: str, folder: Path) -> str | Path:
    """`sqlite` means the file in this folder; a path and no address, in which a `?` would end the file's name.

    A file of SQLite's that is not there is made, for its owner only: it tells results without noise, and routes.
    """
    found = folder.resolve() / INDEX_FILE if given == SQLITE else given
    if isinstance(found, Path) or found.startswith(_SQLITE_FILE):
        make_secret_file(Path(str(found).removeprefix(_SQLITE_FILE)))
    return found


class Refresher:
    """Makes a run's rows anew; says once when that fails, and once when it works again."""

    def __init__(self, index: Index, folder: Path, notify: Notify) -> None:
        self._index = index
        self._folder = folder
        self._notify = notify
        self._broken = False

    def refresh(self) -> None:
        try:
            self._index.write(facts_of(self._folder))
        except (IndexBroken, P2pdpError) as error:
            self._failed(str(error))
        except Exception as error:  # noqa: BLE001  (an index must never end a run, whatever a driver raises)
            self._failed(type(error).__name__)
        else:
            if self._broken:
                self._broken = False
                self._notify(happening("index_whole"))

    def _failed(self, reason: str) -> None:
        if not self._broken:
            self._broken = True
            self._notify(happening("index_broken", reason=reason))


def index_folders(
    folders: Sequence[Path], url: str | None, *, rebuild: bool, open_index: Callable[[str | Path], Index] = Index
) -> dict[str, Any]:
    """`p2pdp index`: writes the rows of these folders' runs and lists all runs there are."""
    if url is None and not folders:
        raise UsageError("p2pdp index: name a run's folder, or with --index a database")
    given = SQLITE if url is None else url
    if given == SQLITE and not folders:
        raise UsageError("--index sqlite: is the file in a run's folder; name the folder, or sqlite:///FILE")
    index = open_index(index_url(given, folders[0]) if folders else given)
    facts = [facts_of(folder) for folder in folders]
    try:
        if rebuild:
            index.rebuild()
        for one in facts:
            index.write(one)
        listed = index.runs(1000, 0)
    except IndexBroken as error:
        raise NotReady(f"--index: {error}") from None
    return {"written": [one.run_id for one in facts], **listed}
