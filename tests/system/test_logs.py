"""Lines of real runs at the finest level: as many whatever a run's length, and nothing in them that is private."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import p2pdp
from tests.support.across import Across
from tests.support.forked import run
from tests.support.launched import complete

_GAUSS = '[noise]\nmechanism = "gaussian"\nsigma = 1.0\n[data]\nkind = "uniform"\nclip = [0.0, 1.0]\n'
_REPORTS = (
    '[noise]\nmechanism = "randomized_response"\nepsilon = 1.0\n[data]\nkind = "categories"\n'
    '[task]\nkind = "histogram"\ncategories = 3\n'
)
FAMILIES = {
    "walk.sum": ('"complete"', '[walk]\norder = "random"\nhops = {0}\n' + _GAUSS),
    "gossip.average": ('"complete"', '[gossip]\nrounds = {0}\npublish = "all"\n' + _GAUSS),
    "shuffle.all": ('"complete"', "[shuffle]\nrounds = {0}\n" + _REPORTS),
}
# How long somebody waited is told, and depends on the machine; so does how often counts of those who are there are.
UNTIMED = frozenset({"waiting"})
COUNTING = frozenset({"started", "enrolling", "seated"})


def run_lines(place: Path, protocol: str, length: int) -> list[dict[str, Any]]:
    graph, rest = FAMILIES[protocol]
    spec = place / f"{length}.toml"
    spec.write_text(f'[run]\nprotocol = "{protocol}"\nnodes = 4\n[graph]\nkind = {graph}\n' + rest.format(length))
    logged = ("--log-level", "debug", "--log-format", "json")
    done = run("run", spec, "--out", place / f"run{length}", "--json", *logged)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stderr.splitlines()]


def kinds(lines: list[dict[str, Any]]) -> Counter[str]:
    """How often each kind of event is told, and which of those are that count."""
    found = Counter(str(line["event"]) for line in lines if line["event"] not in UNTIMED)
    return Counter({kind: 1 if kind in COUNTING else count for kind, count in found.items()})


@pytest.mark.parametrize("protocol", FAMILIES)
def test_lines_do_not_tell_how_long_a_run_was_and_hold_no_value(tmp_path: Path, protocol: str) -> None:
    short, long = (run_lines(tmp_path, protocol, length) for length in (20, 200))
    assert kinds(short) == kinds(long)
    assert {"started", "enrolling", "roster", "enrolled", "published", "collecting"} <= kinds(short).keys()
    text = json.dumps(short)
    values = {value for line in p2pdp.views(tmp_path / "run20") for value in line["values"] or []}
    assert values
    for value in values:
        if isinstance(value, float) and not value.is_integer():
            assert repr(value) not in text
            assert f"{value:.6g}" not in text


def test_bootstrap_and_nodes_say_as_much_of_a_long_walk_as_of_a_short_one(tmp_path: Path) -> None:
    counted = []
    for length in (20, 200):
        place = tmp_path / str(length)
        place.mkdir()
        with Across(place, complete(3, length).replace("patience_s = 6", "patience_s = 30"), 3) as run:
            options = ("--log-level", "debug", "--log-format", "json")
            bootstrap = run.bootstrap(*options)
            nodes = run.all_nodes(*options)
            bootstrap.document()
            for node in nodes:
                node.document()
            lines = [json.loads(line) for each in run.started for line in each.said.splitlines()]
            counted.append(kinds(lines))
    assert counted[0] == counted[1]
    assert {"listening", "enrolling", "roster", "begun", "published", "done", "offer", "seat"} <= counted[0].keys()


def test_an_error_is_the_last_document(tmp_path: Path) -> None:
    with Across(tmp_path, complete(3, 40), 3) as run:
        bootstrap = run.bootstrap("--log-format", "json")
        bootstrap.process.terminate()
        assert bootstrap.end() == 130
        assert json.loads(bootstrap.said.splitlines()[-1])["event"] == "interrupted"
