"""What the README, the guide and the steps of the samples say of commands is what the commands take and print."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import typer

import p2pdp
from p2pdp.cli.main import app
from p2pdp.core import errors
from p2pdp.files.guide import FOLDER, page
from tests.support.sources import TOP

PAGES = [TOP / "README.md", TOP / "deploy" / "samples" / "README.md", *sorted(FOLDER.glob("*.md"))]
CODE = re.compile(r"^```\w*\n(.*?)^```|`([^`\n]+(?:\n[^`\n]+)?)`", re.MULTILINE | re.DOTALL)
COMMANDS = page("commands").text


@lru_cache
def commands() -> dict[str, set[str]]:
    """Each command with its options, subcommands by both of their words."""

    def walk(command: Any, path: tuple[str, ...]) -> dict[str, set[str]]:
        options = {name for one in command.params for name in (*one.opts, *one.secondary_opts)} | {"--help"}
        found = {" ".join(path): options}
        for name, one in getattr(command, "commands", {}).items():
            found |= walk(one, (*path, name))
        return found

    return walk(typer.main.get_command(app), ())


def used(text: str) -> list[str]:
    """Everything after `p2pdp` on each line of code that calls it."""
    parts = [block or inline.replace("\n", " ") for block, inline in CODE.findall(text)]
    lines = [line.partition(" #")[0] for part in parts for line in part.splitlines()]
    return [match[1] for line in lines for match in re.finditer(r"(?:^|[ /])p2pdp ([a-z-].*)", line)]


def wrong(line: str) -> list[str]:
    """What a call names that is not there."""
    words = line.split()
    if words[0].startswith("-"):
        name, rest = "", words
    else:
        two = " ".join(words[:2])
        name = two if two in commands() else words[0]
        rest = words[len(name.split()) :]
    has_more = any(other.startswith(f"{name} ") for other in commands())
    if name not in commands() or (name and has_more and rest and rest[0].islower()):
        return [f"no command {' '.join(words[:2]) if has_more else name}"]
    given = [word.partition("=")[0].rstrip(".,") for word in rest if word.startswith("--")]
    return [f"{name} has no {option}" for option in given if option not in commands()[name]]


@pytest.mark.parametrize("place", PAGES, ids=lambda path: path.relative_to(TOP).as_posix())
def test_commands_and_options_that_are_shown_are_there(place: Path) -> None:
    assert [(line, said) for line in used(place.read_text()) for said in wrong(line)] == []


def test_a_wrong_call_is_seen() -> None:
    text = "`p2pdp runn x`, `p2pdp run --tracee`\n```\n.venv/bin/p2pdp bench hop\np2pdp bench hops --nodes 3 # `\n```\n"
    assert sorted(said for line in used(text) for said in wrong(line)) == [
        "no command bench hop",
        "no command runn",
        "run has no --tracee",
    ]
    assert len(used(text)) == 4


def test_the_page_lists_each_command() -> None:
    table = COMMANDS.partition("## Exit codes")[0]
    listed = re.findall(r"^\| `(\w+)", table, re.MULTILINE)
    assert sorted(listed) == sorted(name for name in commands() if name and " " not in name)


def test_exit_codes_are_those_of_the_errors() -> None:
    listed = set(map(int, re.findall(r"^\| (\d+) \|", COMMANDS, re.MULTILINE)))
    kinds = (errors.UsageError, errors.RunFailed, errors.VerificationFailed, errors.Refused, errors.NotReady)
    assert listed == {0, 130, *(kind.exit_code for kind in kinds)}


def described(heading: str) -> set[str]:
    """The fields that the table, or the text, of a section names."""
    section = COMMANDS.partition(f"## `{heading}`")[2].partition("\n## ")[0]
    return set(re.findall(r"`(\w+)`", section))


def test_fields_of_documents_are_described(tmp_path: Path) -> None:
    spec = p2pdp.load_spec(TOP / "deploy" / "samples" / "ring_sum.toml")
    result = p2pdp.simulate(spec, tmp_path / "run", trace_wire=True).to_json()
    assert set(result) - described("result.json") == {"folder"} - described("result.json")
    audit = p2pdp.audit(tmp_path / "run").to_json()
    assert set(audit) <= described("audit.json")
    assert set(audit["claims"][0]) | set(audit["refusals"][0]) <= described("audit.json")
    others = set(re.findall(r"`(\w+)`", COMMANDS.partition("## Other documents")[2]))
    assert {*p2pdp.plan(spec).to_json(), *p2pdp.verify(tmp_path / "run").to_json()} <= others
    assert {name for line in p2pdp.views(tmp_path / "run") for name in line} <= others
