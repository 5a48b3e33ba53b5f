"""The digest by which owners accept the code that a task names, found without running any of it.

It covers what the spec names (`[task] kind`, `model` and `loss`) and every Python file of the packages that hold it: of
a single module its file, else all of the package at the top. What these import from elsewhere it does not cover, nor
which version of torch is installed; the digest of the model's start, which bootstrap signs, tells of some of that.
"""

from __future__ import annotations

import hashlib
import importlib.util
from functools import cache
from pathlib import Path
from typing import Final

from p2pdp.core.errors import UsageError
from p2pdp.core.installed import installed
from p2pdp.core.spec import TaskPart
from p2pdp.tasks.named import LOSSES, OBJECTIVES, TORCH

_KIND: Final = "sha256:"


def is_digest(text: str) -> bool:
    digits = text.removeprefix(_KIND)
    return text.startswith(_KIND) and len(digits) == 64 and set(digits) <= set("0123456789abcdef")


def model_code(task: TaskPart) -> str:
    """Return the digest of the code that a task names; the task is one that is loaded by name."""
    digest = hashlib.sha256(repr((task.kind, task.model, task.loss)).encode())
    for top in sorted({place.partition(":")[0].partition(".")[0] for place in _places(task)}):
        digest.update(_of_package(top))
    return f"{_KIND}{digest.hexdigest()}"


def _places(task: TaskPart) -> list[str]:
    if task.kind != TORCH:
        return [installed(OBJECTIVES)[task.kind].value]
    assert task.model is not None
    return [task.model] if task.loss is None or task.loss in LOSSES else [task.model, task.loss]


@cache
def _of_package(top: str) -> bytes:
    """Return the digest of the Python files of a package or module at the top; finding it imports nothing."""
    found = importlib.util.find_spec(top)
    if found is None:
        raise UsageError(f"[task] model: there is no module {top} here; install the package that holds it")
    folders = [Path(folder) for folder in found.submodule_search_locations or ()]
    if not folders:
        if found.origin is None or not Path(found.origin).is_file():
            raise UsageError(f"[task] model: the module {top} has no file, so nobody can accept it by its digest")
        files = [(Path(found.origin).name, Path(found.origin))]
    else:
        files = [(path.relative_to(folder).as_posix(), path) for folder in folders for path in folder.rglob("*.py")]
    digest = hashlib.sha256(top.encode())
    for name, path in sorted(files):
        content = path.read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.digest()
