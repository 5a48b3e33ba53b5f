"""Specs as a whole: reading, overriding, filling in, writing back, naming."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import Spec
from p2pdp.crypto.identity import RunKey
from p2pdp.files.making import make_spec
from p2pdp.files.spec import elsewhere, load_spec, named_files, parse_spec, spec_digest, spec_to_toml
from tests.support.small import RING

SAMPLES = sorted((Path(__file__).parents[2] / "deploy" / "samples").glob("*.toml"))
SUM = """
[run]
protocol = "walk.sum"
nodes = 6
[graph]
kind = "complete"
[walk]
order = "random"
hops = 9
[noise]
mechanism = "gaussian"
sigma = 1
[data]
kind = "uniform"
clip = [0, 1]
"""
LEARNING = """
[run]
protocol = "gossip.sgd"
nodes = 32
expires = 2030-01-31T12:00:00Z
[transport]
host = "broker.example"
port = 8883
user = "me"
password_file = "secret/pw"
ca = "ca.pem"
certificate = "me.pem"
key = "me.key"
[graph]
kind = "erdos_renyi"
probability = 0.5
weights = "lazy"
changing = true
public = false
[gossip]
rounds = "auto"
accelerated = true
message_sigma = 0.5
publish = "one"
lambda = 0.25
[noise]
mechanism = "gaussian"
sigma = 0.8
sampler = "fast"
[data]
kind = "csv"
path = "../table.csv.gz"
columns = ["a", 3]
header = true
separator = ";"
target = "price"
rule = "< -119.57"
standardize = { low = [32.5, 1], high = [42.0, 1e3] }
unit_norm = true
split_by = 0
[task]
kind = "logistic_regression"
clip = 1
rate = 0.7
rounds = 10
regularization = 0
batch = 8
test = 0.2
[privacy]
delta = 1e-6
unit = "user"
colluders = [3, 7]
budget = 2
"""


def test_samples_exist() -> None:
    names = {sample.stem for sample in SAMPLES}
    assert names >= {
        "ring_sum", "complete_sum", "ring_histogram", "complete_histogram", "graph_sum", "vector_sum",
    }  # fmt: skip


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_samples_load_open_with_a_comment_and_survive_a_round_trip(sample: Path) -> None:
    spec = load_spec(sample)
    written = spec_to_toml(spec)
    assert parse_spec(written, None) == parse_spec(written, sample.parent) == spec
    assert spec_to_toml(parse_spec(written, None)) == written
    assert sample.read_text(encoding="utf-8").startswith("# ")


def test_everything_in_a_spec_is_kept() -> None:
    spec = parse_spec(LEARNING, None)
    given_keys = {f"{name}.{key}" for name, table in tomllib.loads(LEARNING).items() for key in table}
    written = tomllib.loads(spec_to_toml(spec))
    assert given_keys <= {f"{name}.{key}" for name, table in written.items() for key in table}
    assert parse_spec(spec_to_toml(spec), None) == spec
    assert spec.options.spectral_gap == 0.25
    assert spec.run.expires == "2030-01-31T12:00:00+00:00"
    assert spec.data.columns == ("a", 3)
    assert spec.data.standardize == {"low": [32.5, 1.0], "high": [42.0, 1000.0]}
    assert spec.privacy.colluders == (3, 7)


def test_defaults_are_filled_in() -> None:
    spec = parse_spec(SUM, None)
    assert spec.task.kind == "sum"
    assert spec.run.min_nodes == 6
    assert spec.graph.public is True
    assert spec.privacy.delta == 1e-6
    assert (spec.run.transport, spec.run.durability, spec.run.seed) == ("tcp", "process", None)
    assert (spec.run.patience_s, spec.run.enrol_timeout_s, spec.run.audit) == (10.0, 60.0, True)
    assert spec.options.tokens == 1
    assert parse_spec(SUM, None, ['graph.kind="star"']).graph.public is False


finite = st.floats(1e-12, 1e12)
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)


@st.composite
def walk_specs(draw: st.DrawFn) -> str:
    """A random, possible walk.sum spec."""
    n = draw(st.integers(1, 50))
    order = draw(st.sampled_from(["ring", "random"]))
    steps = {"laps": draw(st.integers(1, 10**6))} if order == "ring" else {"hops": draw(st.integers(1, 10**9))}
    sections: dict[str, dict[str, Any]] = {
        "run": {"protocol": "walk.sum", "nodes": n, "seed": draw(st.integers(0, 2**70)), "patience_s": draw(finite)},
        "graph": {"kind": "ring"},
        "walk": {"order": order, **steps},
        "data": {"kind": "csv", "path": "/" + draw(texts), "columns": draw(st.lists(texts, min_size=1, unique=True))},
        "privacy": {"delta": draw(st.floats(1e-300, 0.5)), "colluders": draw(st.sets(st.integers(0, n - 1)))},
    }
    sections["privacy"]["colluders"] = sorted(sections["privacy"]["colluders"])[: n - 1]
    low = draw(st.floats(-1e9, 1e9))
    sections["data"]["clip"] = [low, low + draw(st.floats(1.0, 1e9))]
    mechanism = draw(st.sampled_from(["gaussian", "laplace", "none"]))
    scale = {} if mechanism == "none" else {"sigma": draw(finite)}
    sections["noise"] = {"mechanism": mechanism, "sampler": draw(st.sampled_from(["exact", "fast"])), **scale}
    if order == "ring":
        sections["noise"]["closing"] = draw(st.booleans())
    return "\n".join(
        f"[{name}]\n" + "\n".join(f"{key} = {as_toml(value)}" for key, value in table.items())
        for name, table in sections.items()
    )


def as_toml(value: Any) -> str:
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(letter):08x}" for letter in value) + '"'
    if isinstance(value, bool):
        return str(value).lower()
    return f"[{', '.join(map(as_toml, value))}]" if isinstance(value, list) else repr(value)


@given(walk_specs())
def test_specs_survive_a_round_trip(text: str) -> None:
    spec = parse_spec(text, None)
    again = parse_spec(spec_to_toml(spec), None)
    assert again == spec
    assert spec_digest(again) == spec_digest(spec)


def test_paths_are_relative_to_the_spec(tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "a.toml").write_text(LEARNING)
    spec = load_spec(str(tmp_path / "specs" / "a.toml"))
    assert spec.data.path == str(tmp_path.resolve() / "table.csv.gz")
    assert spec.transport.password_file == str(tmp_path.resolve() / "specs" / "secret" / "pw")
    assert spec.transport.ca == str(tmp_path.resolve() / "specs" / "ca.pem")
    assert parse_spec(LEARNING, None).data.path == "../table.csv.gz"


def test_the_digest_names_everything_but_places() -> None:
    spec = parse_spec(LEARNING, None)
    assert len(spec_digest(spec)) == 32
    moved = parse_spec(LEARNING, Path("/elsewhere"))
    assert moved != spec
    assert spec_digest(moved) == spec_digest(spec)
    defaults = parse_spec(SUM + "[task]\nkind = 'sum'\n[privacy]\ndelta = 0.000001\n", None, ["run.min_nodes=6"])
    assert spec_digest(defaults) == spec_digest(parse_spec(SUM, None))


@pytest.mark.parametrize(
    "override",
    [
        "run.nodes=33", "run.seed=1", 'run.transport="memory"', 'run.durability="power"', "run.patience_s=11",
        "run.min_nodes=3", "run.enrol_timeout_s=61", 'run.expires="2031-01-31T12:00:00Z"', "run.audit=false",
        'transport.host="h"', "transport.port=1", "graph.probability=0.25", 'graph.weights="uniform"',
        "gossip.rounds=2", "gossip.accelerated=false", "gossip.message_sigma=1",
        'gossip.publish="all"', "gossip.lambda=0.5", "noise.sigma=1", 'noise.sampler="exact"', 'data.target="b"',
        'data.columns=["a"]', 'data.rule="> 1"', "data.unit_norm=false", "task.rate=1", "privacy.delta=1e-7",
        "privacy.colluders=[3]", "privacy.budget=1", 'task.kind="linear_regression"',
    ],
)  # fmt: skip
def test_every_other_change_changes_the_digest(override: str) -> None:
    assert spec_digest(parse_spec(LEARNING, None, [override])) != spec_digest(parse_spec(LEARNING, None))


def test_overrides_come_before_the_checks_and_in_order() -> None:
    spec = parse_spec(
        SUM, None, ["walk.hops=4", "walk.hops = 5 ", 'task.kind="mean"', "data.clip=[-1, 2.5]", "run.audit=false"]
    )
    assert (spec.options.hops, spec.task.kind, spec.data.clip, spec.run.audit) == (5, "mean", (-1.0, 2.5), False)


@pytest.mark.parametrize(
    ("override", "error"),
    [
        ("walk.hop=3", r'^\[walk\] hop: unknown key; did you mean "hops"\?$'),
        ("wlak.hops=3", r'^--set wlak.hops=3: \[wlak\]: unknown section; did you mean "walk"\?$'),
        ("run.transport=mqtt", r"""^--set run.transport=mqtt: .* needs quotes: --set 'run.transport="mqtt"'\.$"""),
        ("run.audit=True", r"needs quotes"),
        ("walk.hops=", r"the value is not TOML"),
        ("walk.hops=1\nlaps = 2", r"the value is not TOML"),
        ('run.transport="mqtt', r'"mqtt: the value is not TOML\.$'),
        ("walk.hops=" + "[" * 5000, r"the value is not TOML"),
        ("walk.hops=" + "9" * 5000, r"the value is not TOML"),
        ("walk.hops", r"must read section\.key=value"),
        ("hops=3", r"must read section\.key=value"),
        ("a.b.c=3", r"must read section\.key=value"),
        ("walk.hops=3.0", r"^\[walk\] hops: must be a whole number"),
    ],
)
def test_wrong_overrides_are_named(override: str, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        parse_spec(SUM, None, [override])


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[run]\nnodes = \n", r"^The spec is not TOML: .*line 2"),
        ("x = " + "[" * 5000, r"^The spec is not TOML"),
        ("", r"^\[run\] is missing; it needs protocol and nodes at least"),
        (SUM.replace("[noise]", "[niose]"), r'^\[niose\]: unknown section; did you mean "noise"\?'),
        (SUM.replace("nodes = 6", ""), r"^\[run\] nodes: missing"),
        (SUM.replace('kind = "complete"', ""), r"^\[graph\] kind: missing"),
        (SUM.replace('protocol = "walk.sum"', ""), r"^\[run\] protocol: missing"),
        (
            SUM.replace('protocol = "walk.sum"', 'protocol = "walk.sun"'),
            r'"walk.sun" is unknown; did you mean "walk.sum"',
        ),
        ("walk = 3\n" + SUM.replace("[walk]\norder", "#").replace("hops", "#hops"), r"^\[walk\] must be a section"),
    ],
)
def test_wrong_texts_are_named(text: str, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        parse_spec(text, None)


def test_wrong_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"absent\.toml: cannot be read: No such file"):
        load_spec(tmp_path / "absent.toml")
    (tmp_path / "latin.toml").write_bytes(b"# T\xfcrme\n")
    with pytest.raises(UsageError, match=r"latin\.toml: is not a text file in UTF-8"):
        load_spec(tmp_path / "latin.toml")
    (tmp_path / "bad.toml").write_text(SUM.replace("hops", "hopps"))
    with pytest.raises(UsageError, match=r'bad\.toml: \[walk\] hopps: unknown key; did you mean "hops"\?'):
        load_spec(tmp_path / "bad.toml")


def edge_spec(folder: Path) -> Path:
    (folder / "edges.txt").write_text("a b\nb c\nx y\n")
    text = SUM.replace('kind = "complete"', 'kind = "file"\npath = "edges.txt"').replace("nodes = 6\n", "")
    (folder / "spec.toml").write_text(text)
    return folder / "spec.toml"


def test_an_edge_list_gives_the_number_of_nodes(tmp_path: Path) -> None:
    path = edge_spec(tmp_path)
    spec = load_spec(path)
    assert (spec.run.nodes, spec.run.min_nodes, spec.graph.public) == (3, 3, True)
    assert load_spec(path, ["run.nodes=3"]) == spec
    with pytest.raises(UsageError, match=r"\[run\] nodes: is 4, but the largest component of .* has 3 nodes"):
        load_spec(path, ["run.nodes=4"])
    with pytest.raises(UsageError, match=r"none\.txt: cannot be read"):
        load_spec(path, ['graph.path="none.txt"'])


def test_a_text_without_a_folder_opens_no_file(tmp_path: Path) -> None:
    written = spec_to_toml(load_spec(edge_spec(tmp_path)))
    (tmp_path / "edges.txt").unlink()
    assert parse_spec(written, None).run.nodes == 3
    with pytest.raises(UsageError, match=r"edges\.txt: cannot be read"):
        parse_spec(written, tmp_path)


def test_what_no_spec_can_hold_is_not_written() -> None:
    spec = parse_spec(SUM, None)
    broken: Spec = dataclasses.replace(spec, data=dataclasses.replace(spec.data, kind=b"csv"))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="cannot hold a bytes"):
        spec_to_toml(broken)


def test_the_auditors_key_is_in_the_spec_whether_given_or_in_a_file(tmp_path: Path) -> None:
    key = RunKey(bytes([3] * 32)).public.hex()
    (tmp_path / "auditor.pub").write_text(key + "\n")
    (tmp_path / "spec.toml").write_text(SUM + '[audit]\nkey = "auditor.pub"\n')
    found = load_spec(tmp_path / "spec.toml")
    assert found.audit.key == key
    assert parse_spec(spec_to_toml(found), None) == found
    assert parse_spec(SUM + f'[audit]\nkey = "{key.upper()}"\n', None).audit.key == key
    assert spec_digest(found) != spec_digest(parse_spec(SUM, None))


@pytest.mark.parametrize("key", ["auditor.pub", "00", "0" * 63 + "g", "00" * 32, "01" + "00" * 31])
def test_what_is_no_key_is_refused_and_no_file_is_opened_for_others(key: str) -> None:
    with pytest.raises(UsageError, match=r"\[audit\] key"):
        parse_spec(SUM + f'[audit]\nkey = "{key}"\n', None)


@pytest.mark.parametrize(
    ("part", "changed"),
    [
        ("options", {"tokens": None}),
        ("privacy", {"delta": None}),
        ("noise", {"closing": None, "sampler": None}),
        ("run", {"patience_s": None, "min_nodes": None}),
        ("graph", {"degree": "x", "public": None}),
    ],
)
def test_a_spec_that_was_changed_in_code_has_the_defaults_of_a_file(part: str, changed: dict[str, Any]) -> None:
    sample = Path(__file__).parents[2] / "deploy" / "samples" / "complete_sum.toml"
    spec = load_spec(sample, ["run.patience_s=10"])
    odd = dataclasses.replace(spec, **{part: dataclasses.replace(getattr(spec, part), **changed)})
    assert odd != spec
    assert make_spec(odd) == spec


def test_a_spec_with_plain_names_has_the_same_digest_and_tells_no_place(tmp_path: Path) -> None:
    text = RING.replace('kind = "uniform"', 'kind = "csv"\npath = "ward/of-seven.v2.csv.gz"')
    spec = parse_spec(text, None)
    plain = elsewhere(spec, "inputs/")
    assert plain.data.path == "inputs/data.csv.gz"
    assert spec_digest(plain) == spec_digest(spec)
    assert named_files(spec) == {"data.csv.gz": Path("ward/of-seven.v2.csv.gz")}
    assert named_files(parse_spec(RING, None)) == {}
    assert elsewhere(parse_spec(RING, None), "inputs/") == parse_spec(RING, None)
