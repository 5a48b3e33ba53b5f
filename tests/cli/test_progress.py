from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import typer

import p2pdp
from p2pdp.cli.progress import Log, LogFormat, LogLevel, logged, printable, progress_bar, run_progress
from p2pdp.core.errors import RunFailed
from p2pdp.core.happenings import happening
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
        ({"event": "roster", "n": 16}, "nodes receive the roster"),
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


def test_sentences_are_lines_from_a_level_on(capsys: pytest.CaptureFixture[str]) -> None:
    log = Log(LogLevel.WARNING, LogFormat.TEXT)
    log(happening("roster", n=3))
    log(happening("excluded", user=2))
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", f"{happening('excluded', user=2).text}\n")


def test_documents_have_time_level_event_text_and_facts(capsys: pytest.CaptureFixture[str]) -> None:
    Log(LogLevel.DEBUG, LogFormat.JSON)(happening("seated", count=2, of=3))
    document = json.loads(capsys.readouterr().err)
    assert document.pop("time").endswith("Z")
    assert document == {
        "level": "debug", "event": "seated", "text": happening("seated", count=2, of=3).text, "count": 2, "of": 3,
    }  # fmt: skip


@pytest.mark.parametrize("form", LogFormat)
def test_what_others_wrote_stays_in_its_line(form: LogFormat, capsys: pytest.CaptureFixture[str]) -> None:
    Log(LogLevel.INFO, form)(happening("told", text="a\nb\x1b[2Jc\u2028d"))
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert "\x1b" not in err
    assert printable("a\nb") == "a\\nb"


def test_the_end_is_a_document_where_lines_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as failed, logged(LogLevel.ERROR, LogFormat.JSON):
        raise RunFailed("user 3 is gone")
    assert failed.value.exit_code == 3
    with pytest.raises(typer.Exit) as ended, logged(LogLevel.ERROR, LogFormat.JSON):
        raise SystemExit(130)
    assert ended.value.exit_code == 130
    documents = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(each["event"], each["code"]) for each in documents] == [("failed", 3), ("interrupted", 130)]


def test_a_reader_that_goes_away_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", buffering=1) as nobody_reads:
        monkeypatch.setattr("sys.stderr", nobody_reads)
        Log(LogLevel.INFO, LogFormat.TEXT)(happening("roster", n=3))
        with suppress(OSError):
            nobody_reads.close()


def test_other_ends_are_left_to_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RunFailed), logged(LogLevel.ERROR, LogFormat.TEXT):
        raise RunFailed("user 3 is gone")
    with pytest.raises(SystemExit), logged(LogLevel.ERROR, LogFormat.JSON):
        raise SystemExit(1)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("form", LogFormat)
@pytest.mark.parametrize("to_owner", [True, False])
def test_what_follows_from_data_is_for_their_owner_s_terminal_only(
    form: LogFormat, to_owner: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    Log(LogLevel.DEBUG, form, to_owner=to_owner)(happening("clipped", column="a", clipped=1, rows=2))
    assert bool(capsys.readouterr().err) == (to_owner and form is LogFormat.TEXT)
