from __future__ import annotations

import json
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from p2pdp import __version__
from p2pdp.cli.options import http_options, naming, print_columns, print_document, serves
from p2pdp.core.errors import P2pdpError, RunFailed, UsageError


def test_a_document_is_strict_json_and_all_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    print_document({"a": [1, None], "b": "inf"})
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"a": [1, None], "b": "inf"}
    assert captured.err == ""
    with pytest.raises(ValueError, match="Out of range"):
        print_document({"a": float("nan")})


def test_columns_are_as_wide_as_their_longest_name(capsys: pytest.CaptureFixture[str]) -> None:
    print_columns([("a", "1"), ("long", "2")])
    print_columns([])
    assert capsys.readouterr().out == "a     1\nlong  2\n"


def test_without_a_place_there_is_no_server_and_nothing_to_say_of_it() -> None:
    assert http_options() is None
    others: list[dict[str, Any]] = [
        {name: True if one.default is False else [Path("a")]}
        for name, one in signature(http_options).parameters.items()
        if name != "http"
    ]
    assert len(others) == 7
    for wrong in others:
        with pytest.raises(UsageError, match="--http HOST:PORT"):
            http_options(**wrong)


def test_all_of_it_is_taken_over() -> None:
    made = http_options("a:1", Path("t"), Path("a"), True, Path("c"), Path("k"), ["n"], True)
    assert made is not None
    assert (made.listen, made.version, made.token_file) == ("a:1", __version__, Path("t"))
    assert (made.certificate, made.key, made.names) == (Path("c"), Path("k"), ("n",))
    assert made.is_open
    assert made.auditor_token_file == Path("a")
    assert made.stays


@pytest.mark.parametrize("may_stay", [False, True])
def test_a_command_is_given_the_options_once_and_what_they_say(*, may_stay: bool) -> None:
    got: list[Any] = []

    @serves(may_stay=may_stay)
    def command(name: str, *, served: Any) -> None:
        got.extend([name, served])

    names = list(signature(command).parameters)
    assert names == ["name", *(one for one in signature(http_options).parameters if may_stay or one != "http_stay")]
    defaults = {name: one.default for name, one in signature(command).parameters.items() if name != "name"}
    command(**(defaults | {"name": "me", "http": "a:1", "http_open": True}))
    assert (got[0], got[1].listen, got[1].is_open, got[1].stays) == ("me", "a:1", True, False)


@pytest.mark.parametrize("kind", [UsageError, RunFailed])
def test_an_impossible_graph_is_that_of_a_spec(kind: type[P2pdpError]) -> None:
    with pytest.raises(kind, match=r"^a\.toml: \[graph\] degree"), naming(Path("a.toml")):
        raise kind("[graph] degree: no such graph")
    with pytest.raises(kind, match=r"^\[run\]"), naming(Path("a.toml")):
        raise kind("[run] nodes: too many")
