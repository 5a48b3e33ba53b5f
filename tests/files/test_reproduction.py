from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from p2pdp.core.errors import UsageError
from p2pdp.files import reproduction

if TYPE_CHECKING:
    from pathlib import Path


def test_an_answer_comes_back_while_its_facts_are_the_same(tmp_path: Path) -> None:
    reproduction.write_piece(tmp_path, "000-fig2a", "n10", "digest", {"a": 1.5})
    assert reproduction.read_piece(tmp_path, "000-fig2a", "n10", "digest") == {"a": 1.5}
    assert reproduction.read_piece(tmp_path, "000-fig2a", "n10", "other") is None
    assert reproduction.read_piece(tmp_path, "000-fig2a", "n20", "digest") is None


@pytest.mark.parametrize("text", ["", '{"digest": "digest", "answ', "[]", '{"digest": "digest", "answer": 3}', "\xff"])
def test_a_damaged_answer_is_none(text: str, tmp_path: Path) -> None:
    reproduction.write_piece(tmp_path, "g", "k", "digest", {})
    (tmp_path / "pieces" / "g" / "k.json").write_text(text, encoding="latin-1")
    assert reproduction.read_piece(tmp_path, "g", "k", "digest") is None


def test_numbers_in_tables_read_back_as_they_were(tmp_path: Path) -> None:
    reproduction.write_table(tmp_path / "t.csv", ("n", "what"), [(0.1 + 0.2, "a, b"), (3, 'c"')])
    assert (tmp_path / "t.csv").read_text() == 'n,what\n0.30000000000000004,"a, b"\n3,"c"""\n'


def test_folders_and_files_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is not a folder"):
        reproduction.open_folder(tmp_path / "file")
    with pytest.raises(UsageError, match="file"):
        reproduction.write_piece(tmp_path / "file", "g", "k", "d", {})
    reproduction.open_folder(tmp_path / "new" / "one")
    reproduction.write_piece(tmp_path / "new" / "one", "g", "k", "d", {})
    assert reproduction.read_piece(tmp_path / "new" / "one", "g", "k", "d") == {}


def test_a_scratch_folder_is_gone_afterwards() -> None:
    with reproduction.scratch_folder() as place:
        (place / "a").write_text("")
    assert not place.exists()
