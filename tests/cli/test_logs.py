from __future__ import annotations

import json
import os
from contextlib import suppress

import pytest
import typer

from p2pdp.cli.logs import Log, LogFormat, LogLevel, logged, printable
from p2pdp.core.errors import RunFailed
from p2pdp.core.happenings import happening


def test_sentences_are_lines_from_a_level_on(capsys: pytest.CaptureFixture[str]) -> None:
    log = Log(LogLevel.WARNING, LogFormat.TEXT)
    log(happening("roster", n=3))
    log(happening("excluded", user=2))
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "user 2 is excluded; the others continue\n")


def test_documents_have_time_level_event_text_and_facts(capsys: pytest.CaptureFixture[str]) -> None:
    Log(LogLevel.DEBUG, LogFormat.JSON)(happening("seated", count=2, of=3))
    document = json.loads(capsys.readouterr().err)
    assert document.pop("time").endswith("Z")
    assert document == {
        "level": "debug", "event": "seated", "text": "2 of 3 nodes have taken their seats", "count": 2, "of": 3,
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
