from __future__ import annotations

import sys
from pathlib import Path

import pytest

import p2pdp
from p2pdp.cli.progress import progress_bar, run_progress
from tests.support.small import spec_file


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


def test_a_run_that_nobody_watches_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with run_progress() as told:
        assert told is None
    assert capsys.readouterr() == ("", "")


def test_a_terminal_sees_nodes_counted_then_phases_and_who_is_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    shown: list[str] = []
    events = [
        ({"event": "folder", "folder": "run"}, "starting"),
        ({"event": "started", "count": 3, "of": 17}, "starting processes"),
        ({"event": "enrolling", "count": 9, "of": 16}, "nodes enrol"),
        ({"event": "seated", "count": 1, "of": None}, "1/?"),
        ({"event": "roster", "n": 16}, "nodes take their seats"),
        ({"event": "seated", "count": 12, "of": 16}, "12/16"),
        ({"event": "enrolled", "n": 16}, "the protocol runs"),
        ({"event": "restarted", "user": 3, "users": 1}, "the protocol runs; 1 restarted"),
        ({"event": "restarted", "user": 3, "users": 1}, "the protocol runs; 2 restarted"),
        ({"event": "excluded", "user": 3}, "the protocol runs; 2 restarted; 1 out"),
        ({"event": "told", "text": "waiting for bootstrap"}, "waiting for bootstrap; 2 restarted; 1 out"),
        ({"event": "published"}, "nodes close their ledgers; 2 restarted; 1 out"),
        ({"event": "collecting"}, "auditing"),
    ]
    for event, text in events:
        with run_progress() as told:  # one that ends shows its last state
            assert told is not None
            for earlier in [*shown, event]:
                told(earlier)  # type: ignore[arg-type]
        shown.append(event)  # type: ignore[arg-type]
        said = capsys.readouterr()
        assert said.out == ""
        assert text in said.err
