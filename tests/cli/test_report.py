"""`p2pdp report`: two editions, with the modes that they need, and refusals with the reason."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from p2pdp.cli.main import main
from tests.support.made import read
from tests.support.small import COMPLETE, RING, contents, recorded

Captured = pytest.CaptureFixture[str]


def run(*words: object) -> int:
    return main(["report", *map(str, words)])


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def test_the_participants_edition_is_the_default_and_for_everybody(tmp_path: Path, capsys: Captured) -> None:
    place = recorded(tmp_path, COMPLETE)
    assert run(place) == 0
    made = place / "participants.html"
    assert str(made) in capsys.readouterr().out
    assert mode(made) & 0o044
    assert read(made.read_text()).having(id="edition")


def test_the_auditors_edition_is_for_its_owner(tmp_path: Path, capsys: Captured) -> None:
    place = recorded(tmp_path, RING)
    before = contents(place)
    assert run(place, "--for", "auditor", "--out", tmp_path / "own.html", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"file": str(tmp_path / "own.html"), "for": "auditor"}
    assert mode(tmp_path / "own.html") == 0o600
    assert "Confidential" in (tmp_path / "own.html").read_text()
    assert contents(place) == before
    assert run(place, "--for", "auditor") == 0
    assert mode(place / "report.html") == 0o600


def test_an_exported_file_is_enough_for_the_auditor_only(tmp_path: Path, capsys: Captured) -> None:
    place, file = recorded(tmp_path, RING), tmp_path / "file"
    assert main(["export", str(place), "--out", str(file)]) == 0
    assert run(file, "--for", "auditor", "--out", tmp_path / "page.html") == 0
    page = read((tmp_path / "page.html").read_text())
    assert "no readable result.json" in page.said
    assert "without noise, which" not in page.said
    assert run(file, "--out", tmp_path / "other.html") == 5
    assert run(file) == 2
    assert "--out" in capsys.readouterr().err
    assert not (tmp_path / "other.html").exists()


def test_wrong_words_are_refused(tmp_path: Path, capsys: Captured) -> None:
    place = recorded(tmp_path, RING)
    assert run(place, "--allow-missing") == 2
    assert "--for auditor" in capsys.readouterr().err
    assert run(place, "--for", "everybody") == 2
    assert run(place, "--out", tmp_path) == 2
    assert run(tmp_path / "none") == 2


def test_missing_ledgers_are_allowed_where_that_is_said(tmp_path: Path) -> None:
    place = recorded(tmp_path, RING)
    (place / "nodes" / "0001" / "view.ledger").unlink()
    assert run(place, "--for", "auditor") == 4
    assert run(place, "--for", "auditor", "--allow-missing") == 0
    assert run(place) == 0, "which is made of what was published"
    (place / "curator" / "view.ledger").unlink()
    assert run(place) == 4
