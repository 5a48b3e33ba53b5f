from __future__ import annotations

from pathlib import Path

import pytest

from p2pdp.core.errors import UsageError
from p2pdp.files.folder import PARTICIPANTS_PAGE, REPORT_FILE
from p2pdp.files.pages import page_file

PAGE = "<!DOCTYPE html>\n<html lang='en'></html>"


def test_a_page_goes_into_the_folder_of_its_run_unless_it_is_told_where(tmp_path: Path) -> None:
    assert page_file(tmp_path, None, REPORT_FILE) == tmp_path / REPORT_FILE
    assert page_file(tmp_path, tmp_path / "mine.html", REPORT_FILE) == tmp_path / "mine.html"


def test_a_page_takes_the_place_of_a_page_and_of_nothing_else(tmp_path: Path) -> None:
    for name, text in (("earlier.html", PAGE), ("empty.html", "")):
        (tmp_path / name).write_text(text)
        assert page_file(tmp_path, tmp_path / name, REPORT_FILE) == tmp_path / name
    for name, data in (("view.ledger", b"p2pdp ledger"), ("spec.toml", b"[run]\n"), ("rows.csv", b"hours\n1\n")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(UsageError, match="exists already"):
            page_file(tmp_path, tmp_path / name, REPORT_FILE)


def test_no_edition_takes_the_name_of_another(tmp_path: Path) -> None:
    assert page_file(tmp_path, tmp_path / PARTICIPANTS_PAGE, PARTICIPANTS_PAGE) == tmp_path / PARTICIPANTS_PAGE
    for name, other in ((REPORT_FILE, PARTICIPANTS_PAGE), (PARTICIPANTS_PAGE, REPORT_FILE)):
        with pytest.raises(UsageError, match="other edition"):
            page_file(tmp_path, tmp_path / other, name)


def test_a_file_has_no_folder_for_a_page(tmp_path: Path) -> None:
    (tmp_path / "run.p2pdp").write_bytes(b"")
    with pytest.raises(UsageError, match="name a file"):
        page_file(tmp_path / "run.p2pdp", None, REPORT_FILE)
