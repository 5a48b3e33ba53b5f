from __future__ import annotations

import sys
from pathlib import Path

import pytest

import p2pdp
from p2pdp.cli.progress import progress_bar
from tests.runs.small import spec_file


def test_there_is_no_bar_where_nobody_watches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("simulating", p2pdp.load_spec(spec_file(tmp_path))) as progress:
        assert progress is None
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("term", ["xterm", "xterm-256color"])
def test_a_terminal_sees_a_bar_on_the_error_stream(
    term: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", term)
    with progress_bar("simulating", p2pdp.load_spec(spec_file(tmp_path))) as progress:
        assert progress is not None
        progress(3, 8)
        progress(9, 8)
    said = capsys.readouterr()
    assert said.out == ""
    assert "simulating walk.sum, 4 nodes" in said.err
    assert "8/8" in said.err
