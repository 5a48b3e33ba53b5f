from __future__ import annotations

import json
from typing import TYPE_CHECKING

from p2pdp.cli.main import main
from tests.runs.small import RING, recorded

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
    assert "can read no contribution alone" in said(capsys, "attack", place, "--observer", "4")[1]


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
