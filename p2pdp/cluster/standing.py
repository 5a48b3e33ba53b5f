"""The kind of a folder, and whether a process is at work in it; nothing is written."""

from __future__ import annotations

import fcntl
from enum import StrEnum
from pathlib import Path

from p2pdp.cluster.folder import RUN_FILE, is_bootstrap_folder
from p2pdp.core.errors import UsageError
from p2pdp.node.folder import NODE_FILE, is_node_folder


class Kind(StrEnum):
    LOCAL = "local"
    BOOTSTRAP = "bootstrap"
    NODE = "node"
    SIMULATED = "simulated"


def kind_of(folder: Path) -> Kind:
    """Return what kind of run, or part of one, a folder holds; what holds none counts as simulated."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: is neither a folder nor an http address")
    if is_node_folder(folder):
        return Kind.NODE
    if is_bootstrap_folder(folder):
        return Kind.BOOTSTRAP
    return Kind.LOCAL if (folder / RUN_FILE).is_file() else Kind.SIMULATED


def is_at_work(folder: Path) -> bool:
    """Return whether a process is at work in the folder, by the lock that it holds for as long as it lives."""
    file = folder / (NODE_FILE if is_node_folder(folder) else RUN_FILE)
    try:
        with file.open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
