from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path

import pytest

from p2pdp.files.guide import page
from p2pdp.files.reference import reference
from p2pdp.files.schema import PROTOCOLS, SECTIONS
from tests.laws.sources import TOP

SAMPLES = sorted((TOP / "deploy" / "samples").glob("*.toml"))


@lru_cache
def rows() -> dict[str, list[str]]:
    """The cells of each key's row, by `section.key`."""
    found, section = {}, ""
    for line in reference().splitlines():
        if line.startswith("## `["):
            section = line.removeprefix("## `[").removesuffix("]`")
        elif line.startswith("## "):
            section = ""
        elif section and line.startswith("| `"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            found[f"{section}.{cells[0].strip('`')}"] = cells
    return found


def takes(name: str, protocol: str) -> bool:
    cell = rows()[name][3]
    return cell == "all" or f"`{protocol}`" in cell or f"`{protocol.partition('.')[0]}.*`" in cell


def test_the_page_is_up_to_date() -> None:
    assert page("spec").text == reference(), (
        "make it again: python -c 'from p2pdp.files.reference import write; write()'"
    )


def test_each_key_has_a_row() -> None:
    keys = {f"{name}.{key}" for name, section in SECTIONS.items() for key in section.readers}
    assert keys <= rows().keys()
    assert {"node.identity", "accept.epsilon_max", "budget.ledger"} <= rows().keys()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("walk.laps", {"walk.sum", "walk.histogram", "walk.sgd"}),
        ("gossip.rounds", {"gossip.average", "gossip.sgd"}),
        ("task.clip", {"walk.sgd", "gossip.sgd"}),
        ("task.radius", {"walk.sgd"}),
        ("noise.closing", {"walk.sum"}),
        ("run.nodes", set(PROTOCOLS)),
    ],
)
def test_which_protocols_take_a_key(name: str, expected: set[str]) -> None:
    assert {protocol for protocol in PROTOCOLS if takes(name, protocol)} == expected


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_samples_use_only_keys_that_their_protocol_takes(sample: Path) -> None:
    document = tomllib.loads(sample.read_text())
    given = [f"{section}.{key}" for section, table in document.items() for key in table]
    assert [name for name in given if not takes(name, document["run"]["protocol"])] == []


def test_values_defaults_and_limits() -> None:
    found = rows()
    assert found["run.patience_s"][1:3] == ["number, above 0", "`10`"]
    assert found["run.protocol"][2] == "required"
    assert found["graph.probability"][1] == "number, above 0, at most 1"
    assert found["privacy.colluders"][1:3] == [
        "list of distinct entries, each: whole number from 0 to 9,999,999",
        "`[]`",
    ]
    assert found["accept.observer"][2] == '`"network"`'
