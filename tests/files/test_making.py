from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from p2pdp.core.errors import UsageError
from p2pdp.files.making import make_spec, with_data
from p2pdp.files.spec import load_spec, parse_spec, spec_digest, spec_to_toml
from tests.support.sources import TOP

SAMPLES = sorted((TOP / "deploy" / "samples").glob("*.toml"))
RING = TOP / "deploy" / "samples" / "ring_sum.toml"
SECTIONS: dict[str, Any] = {
    "run": {"protocol": "walk.sum", "nodes": 12},
    "graph": {"kind": "ring"},
    "walk": {"order": "ring", "laps": 2},
    "noise": {"mechanism": "gaussian", "sigma": 2.0},
    "data": {"kind": "uniform", "clip": [0, 1]},
}


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_mapping_reads_as_the_file_does(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    expected = load_spec(path)
    assert make_spec(tomllib.loads(path.read_text())) == expected
    assert make_spec(path) == make_spec(str(path)) == make_spec(expected) == expected


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("noise", "sigm", 1.0),
        ("nois", "sigma", 1.0),
        ("noise", "sigma", -1.0),
        ("noise", "sigma", "much"),
        ("run", "nodes", 1.5),
        ("run", "protocol", "walk.summ"),
        ("data", "path", "x.csv"),
        ("graph", "degree", 3),
        ("gossip", "rounds", 3),
    ],
)
def test_refusals_have_the_words_of_a_file(section: str, key: str, value: Any) -> None:
    with pytest.raises(UsageError) as in_file:
        parse_spec(RING.read_text(), RING.parent, (), [(section, key, value)])
    document = tomllib.loads(RING.read_text())
    document.setdefault(section, {})[key] = value
    for made in (
        lambda: make_spec(document),
        lambda: make_spec(load_spec(RING), {f"{section}.{key}": value}),
        lambda: make_spec(load_spec(RING), {section: {key: value}}),
    ):
        with pytest.raises(UsageError) as refused:
            made()
        assert str(refused.value) == str(in_file.value)
    with pytest.raises(UsageError) as refused:
        make_spec(RING, {f"{section}.{key}": value})
    assert str(refused.value) == f"{RING}: {in_file.value}"


def test_numbers_of_numpy_paths_and_tuples_are_as_in_a_file() -> None:
    odd = {
        "run": {"protocol": "walk.sum", "nodes": np.int64(12)},
        "data": {"kind": "uniform", "clip": (0, np.float32(1))},
    }
    assert make_spec({**SECTIONS, **odd}) == make_spec(SECTIONS)
    with pytest.raises(UsageError, match=r"\[noise\] sigma"):
        make_spec(SECTIONS, {"noise.sigma": object()})
    with pytest.raises(UsageError, match=r"\[noise\]"):
        make_spec(SECTIONS, {"noise": 3})
    with pytest.raises(UsageError, match="no int"):
        make_spec(3)  # type: ignore[arg-type]


def test_changes_are_merged_and_none_takes_a_key_out() -> None:
    spec = make_spec(SECTIONS)
    changed = make_spec(spec, {"noise": {"sigma": None, "epsilon": 1.0}, "noise.delta": 1e-6})
    assert (changed.noise.sigma, changed.noise.epsilon) == (None, 1.0)
    assert changed.options == spec.options
    assert spec.noise.sigma == 2.0


def test_what_was_filled_in_follows_a_change() -> None:
    changed = make_spec(
        make_spec(SECTIONS),
        {"run.nodes": 20, "graph.kind": "complete", "walk": {"order": "random", "hops": 9, "laps": None}},
    )
    assert (changed.run.min_nodes, changed.graph.public) == (20, True)
    hidden = make_spec(changed, {"graph": {"kind": "regular", "degree": 3}})
    assert not hidden.graph.public
    assert make_spec(changed, {"run.min_nodes": 15}).run.min_nodes == 15


def test_a_spec_that_was_changed_in_code_is_checked() -> None:
    spec = make_spec(SECTIONS)
    with pytest.raises(UsageError, match="sigma"):
        make_spec(dataclasses.replace(spec, noise=dataclasses.replace(spec.noise, sigma=0.0)))


def test_data_take_the_place_of_the_kind_and_keep_the_bounds() -> None:
    spec = make_spec(SECTIONS, None, np.arange(24.0))
    assert (spec.data.kind, spec.data.clip) == ("own", (0.0, 1.0))
    assert make_spec(spec, {"noise.sigma": 3.0}).data.own is spec.data.own
    assert make_spec(spec, {"data": {"kind": "uniform"}}).data.own is None
    assert "23" not in repr(spec) + repr(spec.data)
    from_csv = make_spec(
        {**SECTIONS, "data": {"kind": "csv", "path": "x", "columns": ["a"], "header": True, "clip": [0, 1]}},
        None,
        [1] * 12,
    )
    assert from_csv.data.columns == ("a",)
    no_kind = {**SECTIONS, "data": {"clip": [0, 1]}}
    assert make_spec(no_kind, None, [1] * 12).data.kind == "own"
    with pytest.raises(UsageError, match=r"\[data\] clip"):
        make_spec({**SECTIONS, "data": {}}, None, [1] * 12)
    with pytest.raises(UsageError, match=r"\[data\] header"):
        make_spec({**SECTIONS, "data": {"clip": [0, 1], "header": True}}, None, [1] * 12)


WALK = {**SECTIONS, "walk": {"order": "random", "hops": 30}}
FRIENDS = nx.Graph([("cy", "bo"), ("bo", "al"), ("x", "y")])


def test_a_graph_takes_the_place_of_the_kind_and_of_the_number_of_users() -> None:
    spec = make_spec({**WALK, "run": {"protocol": "walk.sum"}}, None, {"bo": [1], "al": [0], "cy": [1]}, FRIENDS)
    assert (spec.run.nodes, spec.graph.kind, spec.graph.public) == (3, "file", True)
    assert spec.graph.own.labels == ("al", "bo", "cy")
    assert list(spec.data.own.columns[0]) == [0.0, 1.0, 1.0]
    again = make_spec(spec, {"noise.sigma": 1.0})
    assert again.graph.own is spec.graph.own
    assert make_spec(again, {"graph": {"kind": "complete", "path": None}}).graph.own is None
    with pytest.raises(UsageError, match=r"\[run\] nodes: is 12, but .* graph given has 3"):
        make_spec(WALK, None, None, FRIENDS)
    with pytest.raises(UsageError, match="no edges"):
        make_spec(WALK, None, None, nx.empty_graph(12))
    weights = {**WALK, "run": {"protocol": "walk.sum"}, "graph": {"public": False}}
    assert make_spec(weights, None, None, FRIENDS).graph.public is False


def test_the_digest_of_a_given_graph_and_data_is_that_of_the_text() -> None:
    spec = make_spec({**WALK, "run": {"protocol": "walk.sum"}}, None, [1, 1, 1], FRIENDS)
    assert spec_digest(parse_spec(spec_to_toml(spec), None)) == spec_digest(spec)


def test_only_a_run_on_given_data_takes_them_again(tmp_path: Path) -> None:
    spec = make_spec(SECTIONS, None, [1] * 12)
    plain = parse_spec(spec_to_toml(spec), None)
    assert plain.data.own is None
    assert with_data(plain, [1] * 12, tmp_path).data.own.rows == 12
    assert with_data(plain, None, tmp_path) is plain
    with pytest.raises(UsageError, match="leave data out"):
        with_data(make_spec(SECTIONS), [1] * 12, tmp_path)


def test_rows_of_nodes_that_take_no_part_are_not_given_to_others() -> None:
    parts = nx.disjoint_union(nx.cycle_graph(5), nx.path_graph(3))
    rows = [1, 2, 3, 4, 5, 60, 70, 80]
    with pytest.raises(UsageError, match="3 of its 8 nodes"):
        make_spec({**WALK, "run": {"protocol": "walk.sum"}}, None, rows, parts)
    by_label = dict(enumerate(rows[:5]))
    assert make_spec({**WALK, "run": {"protocol": "walk.sum"}}, None, by_label, parts).run.nodes == 5
