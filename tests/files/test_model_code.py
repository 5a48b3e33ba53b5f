from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import TaskPart
from p2pdp.files import model_code as ours
from p2pdp.files.model_code import is_digest, model_code

TASK = TaskPart("torch", model="consortium.vision.digits:network")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that must not be run: importing any of it raises an error."""
    top = tmp_path / "consortium"
    (top / "vision").mkdir(parents=True)
    for name in ("__init__.py", "vision/__init__.py", "vision/digits.py", "helper.py"):
        (top / name).write_text(f"raise RuntimeError({name!r})\n")
    (tmp_path / "alone.py").write_text("raise RuntimeError\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    fresh()
    return top


def fresh() -> None:
    ours._of_package.cache_clear()
    importlib.invalidate_caches()


def test_it_is_a_digest_and_nothing_is_imported(package: Path) -> None:
    digest = model_code(TASK)
    assert is_digest(digest)
    assert "consortium" not in sys.modules
    assert not is_digest(digest[:-1])
    assert not is_digest(digest.upper())
    assert is_digest(model_code(TaskPart("torch", model="alone:network")))


@pytest.mark.parametrize("name", ["__init__.py", "vision/digits.py", "helper.py"])
def test_any_file_of_the_package_changes_it(package: Path, name: str) -> None:
    before = model_code(TASK)
    (package / name).write_text("network = 1\n")
    assert model_code(TASK) == before, "a process reads them once"
    fresh()
    assert model_code(TASK) != before


def test_so_do_new_files_and_what_the_spec_names(package: Path) -> None:
    before = model_code(TASK)
    others = [
        TaskPart("torch", model="consortium.vision.digits:other"),
        TaskPart("torch", model="consortium.helper:network"),
        TaskPart("torch", model=TASK.model, loss="mse"),
        TaskPart("torch", model=TASK.model, loss="alone:loss"),
    ]
    assert len({before, *map(model_code, others)}) == 5
    assert model_code(TaskPart("torch", model=TASK.model, start=7, clip=2.0)) == before, "the rest of a spec is shown"
    (package / "more.py").write_text("")
    fresh()
    assert model_code(TASK) != before


def test_what_is_not_installed_is_named() -> None:
    with pytest.raises(UsageError, match="no module there_is_no_such here"):
        model_code(TaskPart("torch", model="there_is_no_such.module:network"))
    with pytest.raises(UsageError, match="sys has no file"):
        model_code(TaskPart("torch", model="sys:exit"))
