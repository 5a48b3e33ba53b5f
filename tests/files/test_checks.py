"""Which keys go together: each impossible combination is refused by the key to change."""

from __future__ import annotations

import re

import pytest

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import Spec
from p2pdp.files.checks import DATA, POSSIBLE, TAKEN, applies, mechanisms, rules_of, tasks
from p2pdp.files.schema import SECTIONS, sections_of
from p2pdp.files.spec import parse_spec
from p2pdp.protocols import ours, protocol
from tests.support.spec_bases import BASES, COUNTS, GOSSIP, GOSSIP_SGD, PAIRS, REALS, RING, SHUFFLE, WALK, WALK_SGD


def spec_of(base: str, *overrides: str) -> Spec:
    return parse_spec(base, None, overrides)


@pytest.mark.parametrize("base", BASES)
def test_the_bases_are_possible(base: str) -> None:
    assert spec_of(base).task.kind in protocol(spec_of(base).run.protocol).tasks


GOOD = [
    (RING, ["noise.share=true", "noise.closing=false"]),
    (RING, ["walk.tokens=6", 'task.kind="mean"']),
    (RING.replace('"gaussian", sigma = 1', '"none"'), []),
    (RING.replace("sigma", "epsilon"), ["noise.delta=1e-6"]),
    (WALK, ['graph.kind="star"', "walk.tokens=7"]),
    (WALK, ['graph.kind="grid"', "graph.rows=2", "graph.columns=3"]),
    (WALK, ['graph.kind="torus"', "graph.columns=3"]),
    (COUNTS, ['data.kind="csv"', 'data.path="x.csv"', "data.columns=[0]"]),
    (COUNTS, ['noise.encoding="unary"']),
    (GOSSIP, ["graph.changing=true", "gossip.lambda=0.25", "gossip.accelerated=true"]),
    (GOSSIP, ['graph.kind="hypercube"', 'graph.weights="lazy"', "gossip.message_sigma=0.5"]),
    (SHUFFLE, ['data.kind="csv"', 'data.path="x.csv"', "data.unit_norm=true"]),
    (REALS, ['run.protocol="shuffle.single"', "shuffle.stay=0.2"]),
    (RING, ["privacy.colluders=[0, 5, 2, 1, 3]", "run.min_nodes=2"]),
    (RING, ['run.transport="mqtt"', 'transport.user="me"', 'transport.password_file="pw"']),
]


@pytest.mark.parametrize(("base", "overrides"), GOOD)
def test_possible_combinations(base: str, overrides: list[str]) -> None:
    spec_of(base, *overrides)


BAD = [
    # sections and protocols
    (RING.replace("walk =", "gossip ="), [], r"^\[gossip\] has no meaning"),
    (RING.replace("walk =", "walks ="), [], r'^\[walks\]: unknown section; did you mean "walk"'),
    (re.sub("walk = .*", "", RING), [], r"^\[walk\] order: missing"),
    (RING, ["gossip.rounds=3"], r"\[gossip\] has no meaning for walk\.sum"),
    (GOSSIP, ['shuffle.rounds="auto"'], r"\[shuffle\] has no meaning"),
    # walks
    (RING, ['graph.kind="complete"'], r'^\[graph\] kind: \[walk\] order "ring" needs kind "ring"'),
    (RING, ["walk.hops=4"], r"^\[walk\] hops: a ring has laps"),
    (WALK, ["walk.laps=4"], r"^\[walk\] laps: a random walk has hops"),
    (RING, ["walk.tokens=7"], r"^\[walk\] tokens: a ring of 6 users"),
    (COUNTS, ['graph.kind="ring"'], r'^\[graph\] kind: walk\.histogram .* needs kind "complete", not "ring"'),
    # graphs
    (WALK, ["graph.degree=2"], r"^\[graph\] degree: only kind"),
    (WALK, ["graph.probability=0.5"], r"^\[graph\] probability: only kind"),
    (WALK, ["graph.radius=0.5"], r"^\[graph\] radius: only kind"),
    (WALK, ['graph.path="e.csv"'], r"^\[graph\] path: only kind"),
    (WALK, ['graph.kind="file"'], r"^\[graph\] path: missing"),
    (WALK, ['graph.kind="regular"'], r"^\[graph\] degree: missing"),
    (WALK, ["graph.changing=true"], r"^\[graph\] changing: only gossip\.average, "),
    (GOSSIP, ['graph.kind="regular"', "graph.degree=4", "graph.changing=true"], r'can change, not "regular"'),
    (GOSSIP, ["graph.changing=true", 'graph.weights="maxdegree"'], r"^\[graph\] weights: nobody knows"),
    (GOSSIP, ["graph.changing=true", "graph.public=true"], r"^\[graph\] public: of a graph that changes"),
    (PAIRS, ['graph.kind="erdos_renyi"', "graph.changing=true"], r"^\[graph\] changing: bootstrap draws"),
    (WALK, ['graph.kind="erdos_renyi"', "graph.changing=true"], r"^\[graph\] changing: only gossip\.average, "),
    (WALK, ['graph.kind="grid"', "graph.rows=4"], r"^\[graph\] rows: .* the 6 nodes"),
    (WALK, ['graph.kind="grid"', "graph.rows=2", "graph.columns=2"], r"^\[graph\] rows: .* the 6 nodes"),
    # noise
    (RING, ["noise.epsilon=1"], r"^\[noise\] epsilon: sigma and epsilon both"),
    (RING, ["noise.delta=1e-6"], r"^\[noise\] delta: only gaussian noise that is set by epsilon"),
    (RING.replace("sigma", "epsilon"), [], r"^\[noise\] delta: missing"),
    (RING.replace(", sigma = 1", ""), [], r"^\[noise\] epsilon: missing"),
    (RING.replace("sigma", "epsilon"), ['noise.mechanism="laplace"', "noise.delta=0.1"], r"^\[noise\] delta: only"),
    (RING, ['noise.mechanism="none"'], r"^\[noise\] sigma: only gaussian and laplace"),
    (RING, ['noise.mechanism="randomized_response"'], r"^\[noise\] mechanism: walk\.sum with task sum takes"),
    (COUNTS, ['noise.mechanism="gaussian"'], r"^\[noise\] mechanism: counts take gaussian noise with"),
    (COUNTS, ["noise.delta=0.1"], r"^\[noise\] delta: only"),
    (COUNTS, ["noise.sigma=1"], r"^\[noise\] epsilon: sigma and epsilon both"),
    (COUNTS, ['noise.mechanism="none"'], r"^\[noise\] epsilon: mechanism"),
    (SHUFFLE, ['noise.mechanism="randomized_response"'], r"^\[noise\] mechanism: shuffle\.all with task mean takes"),
    (GOSSIP_SGD, ['noise.mechanism="laplace"'], r"^\[noise\] mechanism: gossip\.sgd with task logistic"),
    (WALK, ["noise.closing=true"], r'^\[noise\] closing: only order "ring"'),
    (WALK, ["noise.share=false"], r'^\[noise\] share: only order "ring"'),
    (RING, ['noise.mechanism="laplace"', "noise.share=true"], r'^\[noise\] share: only order "ring"'),
    (RING, ['noise.encoding="unary"'], r"^\[noise\] encoding: only randomized_response"),
    # data
    (COUNTS, ["data.clip=[0, 1]"], r"^\[data\] clip: only numbers are clipped"),
    (SHUFFLE, ["data.clip=[0, 1]"], r"^\[data\] clip: only numbers are clipped"),
    (SHUFFLE, ['data.kind="normal"'], r"^\[data\] kind: privunit reports directions: it takes unit_mixture, csv"),
    (SHUFFLE, ['data.kind="npy"', 'data.path="x"'], r"^\[data\] unit_norm: privunit reports directions"),
    (REALS, ['data.kind="unit_mixture"'], r"^\[data\] kind: unit_mixture holds directions"),
    (COUNTS, ['data.kind="unit_mixture"'], r"^\[data\] kind: task histogram takes"),
    (RING.replace(", clip = [0, 1]", ""), [], r"^\[data\] clip: missing"),
    (RING, ['data.kind="categories"'], r"^\[data\] kind: task sum takes"),
    (COUNTS, ['data.kind="uniform"'], r"^\[data\] kind: task histogram takes"),
    (RING, ['data.path="x.csv"'], r"^\[data\] path: only kinds"),
    (RING, ['data.kind="csv"'], r"^\[data\] path: missing"),
    (RING, ["data.columns=[1]"], r"^\[data\] columns: only kinds"),
    (RING, ['data.kind="npy"', 'data.path="x"', 'data.columns=["a"]'], r"^\[data\] columns: columns of an npy"),
    (RING, ['data.kind="npy"', 'data.path="x"', "data.header=true"], r"^\[data\] header: only kind"),
    (RING, ['data.kind="npy"', 'data.path="x"', 'data.separator=";"'], r"^\[data\] separator: only kind"),
    (RING, ["data.unit_norm=false"], r"^\[data\] unit_norm: only rows"),
    (RING, ["data.target=1"], r"^\[data\] target: only learning"),
    (WALK_SGD.replace(", target = 0", ""), [], r"^\[data\] target: missing"),
    # tasks
    (RING, ['task.kind="histogram"'], r"^\[task\] kind: walk\.sum computes sum or mean, not histogram"),
    (COUNTS, ['task.kind="sum"'], r"^\[task\] kind: walk\.histogram computes histogram"),
    (COUNTS.replace("categories = 3", ""), [], r"^\[task\] categories: missing"),
    (RING, ["task.categories=3"], r"^\[task\] categories: only a histogram"),
    (RING, ["task.clip=3"], r"^\[task\] clip: only gossip\.sgd, walk\.sgd can take it"),
    (GOSSIP_SGD.replace("clip = 1, ", ""), [], r"^\[task\] clip: missing"),
    (GOSSIP_SGD.replace(", rounds = 2", ""), [], r"^\[task\] rounds: missing"),
    (WALK_SGD, ["task.rounds=2"], r"^\[task\] rounds: only gossip\.sgd"),
    (SHUFFLE.replace('kind = "mean"', ""), [], r"^\[task\] kind: missing"),
    # gossip and shuffling
    (PAIRS, ["gossip.rounds=3"], r"^\[gossip\] rounds: randomized gossip counts activations"),
    (PAIRS, ["gossip.accelerated=false"], r"^\[gossip\] accelerated: only synchronous"),
    (GOSSIP, ["gossip.activations=3"], r"^\[gossip\] activations: only"),
    (GOSSIP, ["gossip.lambda=0.5"], r"^\[gossip\] lambda: it is assumed only"),
    (GOSSIP.replace('rounds = "auto"', "accelerated = true"), [], r"^\[gossip\] rounds: missing"),
    (PAIRS.replace("activations = 9", 'publish = "all"'), [], r"^\[gossip\] activations: missing"),
    (SHUFFLE.replace('rounds = "mixing"', "stay = 0.5"), [], r"^\[shuffle\] rounds: missing"),
    # the run, privacy, transport
    (RING, ["run.min_nodes=7"], r"^\[run\] min_nodes: must not be above nodes, which is 6"),
    (RING, ["privacy.colluders=[6]"], r"^\[privacy\] colluders: users are numbered from 0 to 5"),
    (RING, ["privacy.colluders=[0,1,2,3,4,5]"], r"^\[privacy\] colluders: somebody"),
    (RING, ['transport.key="k"'], r"^\[transport\] certificate: certificate and key go together"),
]


@pytest.mark.parametrize(("base", "overrides", "error"), BAD)
def test_impossible_combinations_name_the_key(base: str, overrides: list[str], error: str) -> None:
    with pytest.raises(UsageError, match=error):
        spec_of(base, *overrides)


def test_the_tables_speak_of_keys_that_exist() -> None:
    for base in BASES:
        spec = spec_of(base)
        sections = sections_of(spec.run.protocol)
        keys = {f"{name}.{key}" for name, section in sections.items() for key in section.readers}
        for rules in rules_of(spec):
            assert set(rules.only) | set(rules.needed) | {name for name, _, _ in rules.possible} <= keys
    assert {f"{name}.{key}" for name, section in SECTIONS.items() for key in section.readers} >= TAKEN
    assert {key for name in ours() for key in protocol(name).keys} == TAKEN
    for found in map(protocol, ours()):
        assert set(found.tasks) <= set(DATA)
        assert found.default_task is None or found.default_task in found.tasks


@pytest.mark.parametrize("base", BASES)
def test_whatever_is_needed_applies(base: str) -> None:
    spec = spec_of(base)
    for rules in rules_of(spec):
        for name, (when, _) in rules.needed.items():
            if when(spec):
                assert applies(spec, name)


@pytest.mark.parametrize("base", BASES)
def test_every_protocol_has_mechanisms_for_each_of_its_tasks_and_its_own_is_one(base: str) -> None:
    spec = parse_spec(base, None)
    assert spec.noise.mechanism in mechanisms(spec)
    assert spec.task.kind in tasks(spec)


def test_each_entry_names_a_key_and_says_why_in_a_sentence() -> None:
    spec = parse_spec(BASES[0], None)
    for name, possible, why in POSSIBLE:
        assert name.count(".") == 1
        assert possible(spec)
        assert why(spec).endswith(".")
