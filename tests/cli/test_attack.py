from __future__ import annotations

import json
from typing import TYPE_CHECKING

from p2pdp.cli.main import main
from tests.support.pairwise_world import pairwise
from tests.support.shuffle_specs import shuffle
from tests.support.small import RING, recorded

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

OPEN = RING.replace("nodes = 4", "nodes = 5").replace("sigma = 2.0", "sigma = 2.0\nclosing = false")


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(list(arguments))
    out = capsys.readouterr()
    return code, out.out, out.err


def test_it_is_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = str(recorded(tmp_path, OPEN))
    code, out, err = said(capsys, "attack", place, "--observer", "3", "--json")
    document = json.loads(out)
    assert (code, err, document["observer"]) == (0, "", 3)
    assert [set(target) for target in document["targets"]] == [
        {"user", "estimate", "error", "noised_value_error_in_sigma"}
    ]


def test_people_get_a_table_or_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = str(recorded(tmp_path, OPEN))
    assert "off by" in said(capsys, "attack", place, "--observer", "3")[1]
    assert "User 4 " in said(capsys, "attack", place, "--observer", "4")[1]


def test_what_is_wrong_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = str(recorded(tmp_path, OPEN))
    for arguments, word in (
        (["--observer", "9"], "users 0 to 4"),
        (["--observer", "x"], "observer"),
        ([], "observer"),
    ):
        code, out, err = said(capsys, "attack", place, *arguments)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
        assert word in err


def test_the_curator_of_shuffling_has_a_table_and_a_relay_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(recorded(tmp_path, shuffle(5, terms="rounds = 2")))
    code, out, _ = said(capsys, "attack", place, "--observer", "curator")
    assert code == 0
    assert "blind guesses find one" in out
    assert json.loads(said(capsys, "attack", place, "--observer", "curator", "--json")[1])["observer"] == "curator"
    code, out, err = said(capsys, "attack", place, "--observer", "3")
    assert (code, out) == (5, "")
    assert err.count("\n") == 1
    assert "sealed reports only" in err


def test_the_curator_of_pairwise_sums_reads_their_sum(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is off by the users' noise, and off what they sent by nothing."""
    place = str(recorded(tmp_path, pairwise(5, privacy="delta = 1e-5")))
    code, out, _ = said(capsys, "attack", place, "--observer", "curator", "--json")
    (found,) = json.loads(out)["targets"]
    assert (code, found["user"]) == (0, [0, 1, 2, 3, 4])
    assert found["noised_value_error_in_sigma"] == 0.0
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert abs(found["estimate"] - result["estimate"]) < 1e-9
    assert abs(found["error"] - result["error"]) < 1e-6
    assert "sum of 0, 1, 2" in said(capsys, "attack", place, "--observer", "curator")[1]


def test_of_a_run_that_is_not_over_a_note_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = recorded(tmp_path, OPEN)
    whole = [said(capsys, *words) for words in _commands(place, "whole")]
    assert [(code, err) for code, _, err in whole] == [(0, "")] * 3
    ledger = place / "nodes" / "0002" / "view.ledger"
    ledger.unlink()
    short = [said(capsys, *words) for words in _commands(place, "short")]
    assert [code for code, _, _ in short] == [0, 0, 0]
    assert all(err.startswith("note: ") and "node 2" in err for _, _, err in short)
    assert "enough for verify and audit" in whole[0][1]
    assert "enough" not in short[0][1]


def _commands(place: Path, name: str) -> list[list[str]]:
    export = ["export", str(place), "--out", str(place.parent / name)]
    return [export, ["attack", str(place), "--observer", "3"], ["views", str(place)]]
