from __future__ import annotations

import json
import sys

import pytest

from p2pdp.cli.guide import for_terminal
from p2pdp.cli.main import main
from p2pdp.files.guide import TOPICS, page, titles

Captured = pytest.CaptureFixture[str]


def test_the_list_names_each_topic_and_its_title(capsys: Captured) -> None:
    assert main(["guide"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[: len(TOPICS)]] == list(TOPICS)
    assert titles()["walks"] in "\n".join(lines)


def test_a_page_that_is_piped_is_plain_markdown(capsys: Captured) -> None:
    assert main(["guide", "trust"]) == 0
    assert capsys.readouterr().out == page("trust").text


def test_a_page_on_a_terminal_is_set(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["guide", "trust"]) == 0
    shown = capsys.readouterr().out
    assert page("trust").title in shown
    assert "\n## " not in shown


def test_json_is_one_document(capsys: Captured) -> None:
    assert main(["guide", "trust", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == page("trust").to_json()
    assert main(["guide", "--json"]) == 0
    assert [one["topic"] for one in json.loads(capsys.readouterr().out)["topics"]] == list(TOPICS)


def test_an_unknown_topic_is_a_wrong_argument(capsys: Captured) -> None:
    assert main(["guide", "nothing"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert all(topic in said.err for topic in TOPICS)


def test_links_between_pages_become_commands() -> None:
    text = "See [this page](walks.md#tokens) and [that](https://example.org/a.md)."
    assert for_terminal("```toml\na = 1\n```\n") == "```\na = 1\n```\n"
    assert for_terminal(text) == "See this page (`p2pdp guide walks`) and [that](https://example.org/a.md)."
