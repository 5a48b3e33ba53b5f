"""How the commands across machines take their options and show what came of it; whole runs are in tests/system."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from p2pdp.cli.main import main
from p2pdp.core.happenings import happening
from p2pdp.runs import across_bootstrap, across_node
from p2pdp.runs.costing import Cost
from p2pdp.runs.own_part import TookPart

COST = [Cost("node", 2.5, 1e-6, "a-priori", "local"), Cost("network", math.inf, 1e-6, None, None)]
TOLD = TookPart("ab" * 16, 3, 5, "walk.sum", 1.5, 0.25, False, True, False, {}, "mine", COST, COST)


def played(monkeypatch: pytest.MonkeyPatch, told: TookPart) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = []

    def take_part(config: Path, out: Path, **options: Any) -> TookPart:
        show = options.pop("show")
        calls.append({"config": config, "out": out, **options})
        options["notify"](happening("offer", text="bootstrap offers\nthis run"))
        show(told)
        return told

    monkeypatch.setattr(across_node, "take_part", take_part)
    return calls


def test_a_node_tells_its_owner_on_the_error_stream_and_gives_one_document(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = played(monkeypatch, TOLD)
    assert main(["node", "n.toml", "--out", "mine", "--share-skeleton", "--trace-wire", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == TOLD.to_json()
    assert printed.err == "bootstrap offers\\nthis run\n"
    expected = {"config": Path("n.toml"), "out": Path("mine"), "share_skeleton": True}
    expected |= {"keep_private": False, "http": None, "trace_wire": True}
    assert [{name: value for name, value in call.items() if name != "notify"} for call in calls] == [expected]


def test_a_node_shows_people_what_was_published(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = played(monkeypatch, TOLD)
    assert main(["node", "n.toml", "--out", "mine", "--keep-private"]) == 0
    out = capsys.readouterr().out
    for word in (
        "walk.sum",
        "user 3 of 5",
        "estimate 1.5",
        "standard error 0.25",
        "p2pdp views mine",
        "epsilon 2.5 at",
    ):
        assert word in out
    assert calls[0]["keep_private"]


def test_a_node_that_was_put_out_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    played(monkeypatch, TookPart("ab", 3, 5, "walk.sum", None, None, True, False, False, {}, "mine", [], []))
    assert main(["node", "n.toml", "--out", "mine"]) == 0
    printed = capsys.readouterr()
    assert "excluded this node" in printed.err
    assert "estimate" not in printed.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["node"], "CONFIG"),
        (["node", "absent.toml", "--out", "x"], "absent.toml"),
        (["node", "absent.toml"], "--out"),
        (["bootstrap", "absent.toml", "--listen", "h:1", "--tokens", "3", "--out", "x"], "absent.toml"),
        (["bootstrap", "absent.toml", "--listen", "h:1", "--out", "x"], "--tokens"),
        (["bootstrap", "absent.toml", "--listen", "h:1", "--tokens", "three", "--out", "x"], "--tokens"),
    ],
)
def test_a_wrong_command_line_is_one_line(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert says in err
    assert err.count("\n") == 1


def test_lines_for_machines_are_documents_and_those_below_the_level_are_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    played(monkeypatch, TookPart("ab", 3, 5, "walk.sum", None, None, True, False, False, {}, "mine", [], []))
    assert main(["node", "n.toml", "--out", "mine", "--log-format", "json", "--log-level", "warning"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert {"level": "warning", "event": "put_out"}.items() <= json.loads(line).items()


def test_an_error_is_a_document_too_where_lines_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["node", "absent.toml", "--out", "x", "--log-format", "json"]) == 2
    document = json.loads(capsys.readouterr().err)
    assert {"level": "error", "event": "failed", "code": 2}.items() <= document.items()
    assert "absent.toml" in document["text"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--http-open"], "--http HOST:PORT"),
        (["--http-token-file", "t"], "--http HOST:PORT"),
        (["--http-cert", "c"], "--http HOST:PORT"),
        (["--http-name", "n"], "--http HOST:PORT"),
    ],
)
def test_options_of_http_mean_nothing_without_it(
    options: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["node", "n.toml", "--out", "x", *options]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("command", [["node", "n.toml"], ["bootstrap", "s.toml", "--tokens", "3"]])
def test_who_is_interrupted_learns_how_to_go_on(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise SystemExit(130)

    monkeypatch.setattr(across_node, "take_part", stopped)
    monkeypatch.setattr(across_bootstrap, "bootstrap", stopped)
    monkeypatch.setattr("p2pdp.files.spec.load_spec", lambda *_: None)
    assert main([*command, "--out", "mine"]) == 130
    assert capsys.readouterr().err == "p2pdp: interrupted; the same command with --out mine goes on\n"


def test_what_was_clipped_is_for_the_owner_and_not_in_a_log_that_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = {"column": "hours", "clipped": 3, "rows": 5}

    def take_part(*_: object, **options: Any) -> TookPart:
        options["notify"](happening("clipped", **moved))
        options["show"](replace(TOLD, clipped=[moved]))
        return TOLD

    monkeypatch.setattr(across_node, "take_part", take_part)
    assert main(["node", "n.toml", "--out", "mine"]) == 0
    printed = capsys.readouterr()
    assert "3 of 5 numbers in column hours" in " ".join(printed.out.split())
    assert printed.err == ""
    assert main(["node", "n.toml", "--out", "mine", "--json", "--log-format", "json"]) == 0
    printed = capsys.readouterr()
    assert (json.loads(printed.out)["clipped"], printed.err) == ([moved], "")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert main(["node", "n.toml", "--out", "mine"]) == 0
    assert "3 of the 5 numbers in column hours" in capsys.readouterr().err
