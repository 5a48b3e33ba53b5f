from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from pathlib import Path

import pytest

from p2pdp.files.guide import page
from p2pdp.files.reference import reference
from p2pdp.files.schema import all_sections
from p2pdp.protocols import ours
from tests.support.sources import TOP

SAMPLES = sorted((TOP / "deploy" / "samples").glob("*.toml"))


@lru_cache
def entries() -> dict[str, list[str]]:
    """What is said of each `section.key`: what it takes, its default, and which protocols take it if not all do."""
    found, section = {}, ""
    for line in reference().splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## `[").removesuffix("]`")
        elif match := re.match(r"\* \*\*`(\w+)`\*\* \((.+?)\): [A-Z`]", line):
            found[f"{section}.{match[1]}"] = match[2].split("; ")
    return found


def takes(name: str, protocol: str) -> bool:
    for said in entries()[name][2:]:
        return f"`{protocol}`" in said or f"`{protocol.partition('.')[0]}.*`" in said
    return True


def test_the_page_is_up_to_date() -> None:
    assert page("spec").text == reference(), (
        "make it again: python -c 'from p2pdp.files.reference import write; write()'"
    )


def test_each_key_has_an_entry() -> None:
    keys = {f"{name}.{key}" for name, section in all_sections().items() for key in section.readers}
    assert keys <= entries().keys()
    assert {"node.identity", "accept.epsilon_max", "budget.ledger"} <= entries().keys()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("walk.laps", {"walk.sum", "walk.histogram", "walk.sgd"}),
        ("gossip.rounds", {"gossip.average", "gossip.sgd"}),
        ("task.clip", {"walk.sgd", "gossip.sgd"}),
        ("task.radius", {"walk.sgd"}),
        ("noise.closing", {"walk.sum"}),
        ("run.nodes", set(ours())),
    ],
)
def test_which_protocols_take_a_key(name: str, expected: set[str]) -> None:
    assert {protocol for protocol in ours() if takes(name, protocol)} == expected


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_samples_use_only_keys_that_their_protocol_takes(sample: Path) -> None:
    document = tomllib.loads(sample.read_text())
    given = [f"{section}.{key}" for section, table in document.items() for key in table]
    assert [name for name in given if not takes(name, document["run"]["protocol"])] == []


def test_values_defaults_and_limits() -> None:
    found = entries()
    assert found["run.patience_s"] == ["number, above 0", "default `10`"]
    assert found["run.protocol"][1] == "required"
    assert found["graph.degree"][1] == "no default"
    assert found["graph.probability"][0] == "number, above 0, at most 1"
    entry = "list of distinct entries, each: whole number from 0 to 9,999,999"
    assert found["privacy.colluders"][:2] == [entry, "default `[]`"]
    assert found["accept.observer"][1] == 'default `"network"`'
