"""The plan as a document, from every sample spec, with nothing started and nothing written."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2pdp
from p2pdp.core.errors import P2pdpError, Refused, UsageError
from p2pdp.core.spec import Spec
from p2pdp.files.checks import applies
from p2pdp.files.schema import all_sections, sections_of
from p2pdp.files.spec import load_spec
from p2pdp.mechanisms import gaussian
from p2pdp.protocols.run_plan import plan_run
from p2pdp.protocols.walk.options import RING_MAX
from p2pdp.runs.budgeting import Reckoner, Reckoning
from p2pdp.runs.plan import HOP_S, check_accountable, costs_of, plan_spec, planned_of
from p2pdp.runs.target import Planned, Target, target_of
from tests.support import readme, small
from tests.support.gossip_learners import gossip_learning
from tests.support.learners import learning, prepared
from tests.support.plans import node_epsilon
from tests.support.readers import COUNTS, given
from tests.support.shuffle_specs import shuffle
from tests.support.sources import TOP

SAMPLES = sorted((TOP / "deploy" / "samples").glob("*.toml"))
DEMO = TOP / "p2pdp" / "files" / "demo.toml"
CONTAINERS = TOP / "deploy" / "containers" / "spec.toml"
PROMISED = ["protocol", "nodes", "claims", "refusals", "standard_error", "messages", "bytes", "seconds"]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_every_sample_has_a_plan(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spec = p2pdp.load_spec(sample)
    document = json.loads(json.dumps(p2pdp.plan(spec).to_json(), allow_nan=False))
    assert set(PROMISED) <= set(document)
    assert (document["protocol"], document["nodes"]) == (spec.run.protocol, spec.run.nodes)
    assert document["claims"]
    assert "target" not in document
    assert document == p2pdp.plan(sample).to_json()
    assert list(tmp_path.iterdir()) == []


# Samples that cannot do better than local DP, after a run or beforehand; their comments say why.
AS_LOCAL_BEFORE = {
    "complete_histogram",
    "gossip_average",
    "gossip_randomized",
    "gossip_sgd",
    "graph_sum",
    "shuffle_single",
}
# … and of the route that a run took.
AS_LOCAL_AFTER = {"gossip_average", "gossip_randomized", "gossip_sgd", "shuffle_single"}
EPSILON_MOST = 3.0


def errors(document: dict[str, Any]) -> tuple[float, float]:
    """The standard error, and that under local DP; the largest of several numbers."""
    both = [document["standard_error"], document["baselines"]["local"]["standard_error"]]
    own, local = (max(one) if isinstance(one, list) else one for one in both)
    return own, local


def says_why(sample: Path) -> bool:
    comment = sample.read_text().partition("[run]")[0]
    return "local DP" in comment


@pytest.mark.parametrize("sample", [*SAMPLES, DEMO, CONTAINERS], ids=lambda path: path.stem)
def test_samples_protect_users_and_are_better_than_local_noise(sample: Path) -> None:
    document = p2pdp.plan(sample).to_json()
    assert document["headline"]["conditioning"] == "a-priori"
    assert document["headline"]["epsilon"] <= EPSILON_MOST
    if sample.stem in AS_LOCAL_BEFORE:
        assert says_why(sample)
    else:
        own, local = errors(document)
        assert own < local


@pytest.mark.parametrize("sample", [*SAMPLES, DEMO, CONTAINERS], ids=lambda path: path.stem)
def test_an_audited_run_of_a_sample_keeps_what_the_plan_promised(sample: Path, tmp_path: Path) -> None:
    document = p2pdp.simulate(sample, tmp_path / "run").to_json()
    assert document["headline"]["epsilon"] <= EPSILON_MOST
    if sample in SAMPLES:
        assert readme.rows()[sample.stem] == readme.expected(document)
    if sample.stem not in AS_LOCAL_AFTER:
        own, local = errors(document)
        assert own < local


def test_the_readme_has_a_row_for_each_sample() -> None:
    assert sorted(readme.rows()) == sorted(sample.stem for sample in SAMPLES)


def test_the_sample_across_machines_protects_its_users(tmp_path: Path) -> None:
    """It is planned where the users' rows are not, and what was assumed of them is said."""
    spec = TOP / "deploy" / "samples" / "nodes" / "hours.toml"
    for users in ("run.nodes=3", "run.nodes=2"):
        document = p2pdp.plan(p2pdp.load_spec(spec, [users])).to_json()
        assert document["headline"]["epsilon"] <= EPSILON_MOST
        assert document["worst"]["epsilon"] <= EPSILON_MOST
        (assumed,) = document["assumed"]
        assert assumed.startswith("own.csv is not on this machine")
    (tmp_path / "hours.toml").write_text(spec.read_text())
    (tmp_path / "own.csv").write_text("hours\n8.0\n7.5\n9.0\n")
    assert p2pdp.plan(tmp_path / "hours.toml").assumed == []


def test_data_that_are_not_here_have_to_be_described(tmp_path: Path) -> None:
    sample = TOP / "deploy" / "samples" / "vector_sum.toml"
    here = p2pdp.plan(sample)
    away = p2pdp.plan(p2pdp.load_spec(sample, ['data.path="none.csv"', 'data.columns=["a", "b", "c"]']))
    assert away.standard_error == here.standard_error
    assert away.claims[-1].epsilon_max == here.claims[-1].epsilon_max
    text = sample.read_text().replace("columns", "# columns").replace("vector_sum.csv", "none.csv")
    (tmp_path / "spec.toml").write_text(text)
    with pytest.raises(UsageError, match=r"none\.csv: is not here; name \[data\] columns"):
        p2pdp.plan(tmp_path / "spec.toml")


def test_what_a_run_would_refuse_is_a_warning(tmp_path: Path) -> None:
    spec = small.spec_file(tmp_path, small.COMPLETE)
    assert p2pdp.plan(spec).warnings == []
    (budget,) = p2pdp.plan(p2pdp.load_spec(spec, ["privacy.budget=1.0"])).warnings
    assert "[privacy] budget" in budget
    (unused,) = p2pdp.plan(p2pdp.load_spec(spec, ['transport.host="boot"'])).warnings
    assert unused.startswith("[transport] host: not used")
    (expired,) = p2pdp.plan(p2pdp.load_spec(spec, ["run.expires=2020-01-01T00:00:00Z"])).warnings
    assert "[run] expires" in expired


@pytest.mark.parametrize(("batch", "warned"), [(3, []), (1000, ["every user has 1000 rows or fewer"])])
@pytest.mark.parametrize("unit", ["user", "record"])
def test_a_batch_that_is_no_minibatch_is_a_warning(tmp_path: Path, unit: str, batch: int, warned: list[str]) -> None:
    text = learning(4, 6, task=f'kind = "logistic_regression"\nclip = 1.0\nrate = 0.05\nbatch = {batch}')
    (tmp_path / "spec.toml").write_text(f'{text}unit = "{unit}"\n')
    found = [text for text in plan_spec(load_spec(tmp_path / "spec.toml"), None).warnings if "batch" in text]
    assert len(found) == len(warned)
    assert all(said in text for said, text in zip(warned, found, strict=True))


def test_fields_are_those_of_the_document() -> None:
    plan = plan_spec(p2pdp.load_spec(SAMPLES[0]), 5.0)
    document = plan.to_json()
    assert {*document} == {*vars(plan)} - {"outlook", "units"}  # which only some runs have
    assert document["target"]["epsilon"] == 5.0
    assert document["target"]["reached"] <= 5.0


def test_baselines_are_at_the_first_bound() -> None:
    plan = p2pdp.plan(TOP / "deploy" / "samples" / "ring_sum.toml")
    assert plan.claims[0].observer == "node"
    local, central = (plan.baselines[name]["standard_error"] for name in ("local", "central"))
    assert isinstance(local, float)
    assert isinstance(central, float)
    assert isinstance(plan.standard_error, float)
    assert central < plan.standard_error < local


def test_users_with_several_rows_have_no_hidden_path(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    data = 'kind = "csv"\npath = "rows.csv"'
    text = small.COMPLETE.replace("seed = 5\n", "").replace('kind = "uniform"', data)
    for count, one_value in ((5, True), (10, False)):
        rows.write_text("0.5\n" * count)
        spec = p2pdp.load_spec(small.spec_file(tmp_path, text))
        assert planned_of(spec).one_value == one_value
        methods = {(claim.observer, claim.method) for claim in plan_spec(spec, None).claims}
        assert (("node", "hidden-path") in methods) == one_value


def test_edge_lists_are_read(tmp_path: Path) -> None:
    (tmp_path / "edges.txt").write_text("a b\nb c\nc d\nd a\n")
    text = small.SPARSE.replace('"regular"\ndegree = 3', '"file"\npath = "edges.txt"').replace("nodes = 6\n", "")
    assert plan_spec(p2pdp.load_spec(small.spec_file(tmp_path, text)), None).nodes == 4


def test_there_is_a_form_for_notebooks() -> None:
    spec = p2pdp.load_spec(SAMPLES[0])
    assert asyncio.run(p2pdp.plan_async(spec)).to_json() == p2pdp.plan(spec).to_json()


def test_a_rate_that_may_diverge_is_warned_of() -> None:
    sample = TOP / "deploy" / "samples" / "walk_sgd.toml"
    assert plan_spec(p2pdp.load_spec(sample), None).warnings == []
    (warning,) = plan_spec(p2pdp.load_spec(sample, ["task.rate=4.0"]), None).to_json()["warnings"]
    assert warning.startswith("[task] rate: 4 is above 2/smoothness")


@pytest.mark.parametrize("name", sorted(small.ALL))
def test_a_run_has_the_error_and_the_messages_that_were_expected(name: str, tmp_path: Path) -> None:
    spec = p2pdp.load_spec(small.spec_file(tmp_path, small.ALL[name]))
    costs = costs_of(planned_of(spec).run, 1.0, 1e-5)
    result = p2pdp.simulate(spec)
    histogram = spec.task.kind == "histogram"  # whose error depends a little on the counts
    assert np.allclose(costs.standard_error, result.standard_error, rtol=0.2 if histogram else 1e-12)
    assert costs.hops == result.hops
    exact = spec.graph.kind != "complete"  # elsewhere tokens may stay where they are
    assert result.messages is not None
    assert result.bytes is not None
    assert abs(costs.messages - result.messages) <= (0 if exact else 10)
    assert 0.6 * result.bytes <= costs.bytes <= 1.1 * result.bytes
    assert costs.seconds == pytest.approx(costs.hops * HOP_S)


def test_a_mean_is_off_by_less(tmp_path: Path) -> None:
    mean = small.RING + '[task]\nkind = "mean"\n'
    errors = []
    for text in (small.RING, mean):
        found = costs_of(planned_of(p2pdp.load_spec(small.spec_file(tmp_path, text))).run, 1.0, 1e-5)
        errors.append(found.standard_error)
    assert errors[0] == pytest.approx(8 * errors[1])


def test_vectors_and_large_tokens_take_larger_frames(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text((",".join(["0.5"] * 60) + "\n") * 4)
    wide = small.RING.replace("seed = 5\n", "").replace('kind = "uniform"', 'kind = "csv"\npath = "rows.csv"')
    plain = costs_of(planned_of(p2pdp.load_spec(small.spec_file(tmp_path))).run, 1.0, 1e-5)
    vector = costs_of(planned_of(p2pdp.load_spec(small.spec_file(tmp_path, wide))).run, 1.0, 1e-5)
    assert isinstance(vector.standard_error, list)
    assert vector.standard_error == pytest.approx([plain.standard_error] * 60)
    assert vector.bytes > plain.bytes
    assert vector.messages == plain.messages


def test_gossip_counts_rounds_and_exchanges(tmp_path: Path) -> None:
    walk = '[walk]\norder = "random"\nhops = 9\n'
    text = small.BARE.replace(walk, "[gossip]\nrounds = 4\n").replace("walk.sum", "gossip.average")
    text = text.replace('mechanism = "none"', 'mechanism = "gaussian"\nsigma = 2.0')
    spec = p2pdp.load_spec(small.spec_file(tmp_path, text))
    costs = costs_of(planned_of(spec).run, 1.0, 1e-5)
    assert (costs.hops, costs.rounds) == (None, 4)
    assert costs.standard_error == pytest.approx(2.0 / 3**0.5)
    assert costs.messages == 4 * 6 + 3


@pytest.mark.parametrize("protocol", ["all", "single"])
@pytest.mark.parametrize("terms", ["rounds = 12\nstay = 0.2", "rounds = 12\ncover = true"])
def test_shuffling_has_the_error_the_messages_and_bytes_that_were_expected(
    protocol: str, terms: str, tmp_path: Path
) -> None:
    text = shuffle(30, 'kind = "regular"\ndegree = 4', protocol, terms)
    spec = p2pdp.load_spec(small.spec_file(tmp_path, text))
    costs = costs_of(planned_of(spec).run, 1.0, 1e-5)
    result = p2pdp.simulate(spec)
    assert (costs.hops, costs.rounds) == (None, 12)
    assert np.mean(costs.standard_error) == pytest.approx(np.mean(result.standard_error or 0.0), rel=0.25)  # type: ignore[arg-type]
    assert result.messages is not None
    assert result.bytes is not None
    assert costs.messages == pytest.approx(result.messages, rel=0.02)
    assert costs.bytes == pytest.approx(result.bytes, rel=0.15)


SAMPLES_ACCOUNTABLE = TOP / "deploy" / "samples"
GRID = "complete_sum", ('graph.kind="grid"',)
DIVIDED = "walk_sgd", ('data.partition="by"', "data.column=0")
NAMED = "walk_sgd", ('task.kind="torch"', 'task.model="nowhere_at_all:network"')
CASES: list[tuple[str, tuple[str, ...]]] = [
    *((path.stem, ()) for path in sorted(SAMPLES_ACCOUNTABLE.glob("*.toml"))),
    GRID,
    DIVIDED,
    NAMED,
]
SOON_S = 60  # on a machine that has other things to do; alone it takes a second or two


@contextmanager
def soon() -> Iterator[None]:
    def late(_number: int, _frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SOON_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def load(sample: str, *overrides: str) -> Spec:
    return load_spec(SAMPLES_ACCOUNTABLE / f"{sample}.toml", overrides)


def counts_in(spec: Spec) -> list[str]:
    sections = sections_of(spec.run.protocol)
    return [name for name in COUNTS if name.partition(".")[0] in sections and applies(spec, name)]


def planned(sample: str, *overrides: str) -> int:
    """The exit code that `plan` would have."""
    try:
        plan_spec(load(sample, *overrides), None).to_json()
    except P2pdpError as error:
        return error.exit_code
    return 0


def test_the_cases_have_a_place_for_every_count() -> None:
    assert {name for sample, more in CASES for name in counts_in(load(sample, *more))} == set(COUNTS)


@pytest.mark.parametrize(("sample", "more"), CASES)
def test_the_largest_count_of_each_key_is_planned_soon_or_refused(sample: str, more: tuple[str, ...]) -> None:
    for name in counts_in(load(sample, *more)):
        section, _, key = name.partition(".")
        value = given(all_sections()[section].readers[key], COUNTS[name].most)
        with soon():
            outcome = planned(sample, *more, f"{name}={value}")
        assert outcome in (0, 2, 3, 5), name


@pytest.mark.parametrize(
    ("sample", "large", "refused"),
    [
        ("ring_sum", "walk.laps=100", "walk.laps=4200"),
        ("complete_sum", "walk.hops=200000", "walk.hops=1000001"),
        ("graph_sum", "walk.tokens=20", "walk.tokens=1001"),
        ("gossip_average", "gossip.rounds=2000", "gossip.rounds=20001"),
        ("gossip_sgd", "task.rounds=10", "task.rounds=1251"),
        ("gossip_randomized", "gossip.activations=1000", "gossip.activations=200001"),
        ("shuffle_all", "shuffle.rounds=1000", "shuffle.rounds=100001"),
        ("complete_sum", "run.nodes=1000", "run.nodes=200001"),
    ],
)
def test_what_is_too_large_to_account_for_is_refused_by_plan_and_node_with_the_reason(
    sample: str, large: str, refused: str
) -> None:
    check_accountable(load(sample, large))
    spec = load(sample, refused)
    with pytest.raises(Refused, match="computed for at most"):
        plan_spec(spec, None)
    reckoner = Reckoner(Reckoning().answer)
    with pytest.raises(Refused, match="computed for at most"):
        reckoner.offer(spec, 1)


def test_rounds_that_follow_from_the_graph_count_too() -> None:
    spec = load("gossip_average", 'graph.kind="path"', "run.nodes=400", "gossip.accelerated=false")
    check_accountable(spec)
    with pytest.raises(Refused, match="rounds of gossip"):
        plan_spec(spec, None)


def test_a_walk_of_too_many_contributions_in_all_is_no_spec() -> None:
    with pytest.raises(UsageError, match=r"\[walk\] tokens: .*contributions"):
        load("graph_sum", "walk.hops=1000000", "walk.tokens=1001")
    assert RING_MAX < 10**9


DELTA = 1e-5
STANDARDIZED = "standardize = { mean = [40.0, 5.0], deviation = [12.0, 3.0], epsilon = 0.5, delta = 4e-6 }"
ESTIMATED = prepared(learning(5, 60, data=f"{STANDARDIZED}\nunit_norm = true"))[0].spec


def planned_target(tmp_path: Path, name: str, *overrides: str) -> Planned:
    return planned_of(p2pdp.load_spec(small.spec_file(tmp_path, small.ALL[name]), overrides))


def bound_with(given: Planned, target: Target, factor: float) -> float:
    """The bound of one other node with so much of the noise that was found."""
    spec = given.run.spec
    value = target.value / factor if target.parameter == "epsilon" else target.value * factor
    noise = replace(spec.noise, sigma=None, epsilon=None, delta=None)
    noise = replace(noise, epsilon=value) if target.parameter == "epsilon" else replace(noise, sigma=value)
    run = plan_run(replace(spec, noise=noise), given.run.n, given.run.dimensions, given.edges)
    return node_epsilon(run, DELTA, one_value=given.one_value)


@pytest.mark.parametrize("name", ["ring", "complete", "sparse", "histogram", "ring_histogram"])
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_what_is_found_is_enough_and_little_less_is_not(tmp_path: Path, name: str, epsilon: float) -> None:
    given = planned_target(tmp_path, name)
    target = target_of(given, epsilon)
    assert target.reached <= epsilon
    assert bound_with(given, target, 1.0) == pytest.approx(target.reached, rel=1e-9)
    assert bound_with(given, target, 0.97) > epsilon
    assert (target.epsilon, target.delta) == (epsilon, DELTA)


def test_the_ring_needs_what_its_closed_form_says(tmp_path: Path) -> None:
    """Two laps: mu^2 = 2/sigma^2 for the worst pair, and for local differential privacy just as much."""
    target = target_of(planned_target(tmp_path, "ring"), 1.0)
    sigma = 2**0.5 * gaussian.sigma_of(1.0, DELTA)
    assert target.parameter == "sigma"
    assert sigma <= target.value <= sigma * 1.001
    assert target.local_value == pytest.approx(sigma)


def test_a_smaller_epsilon_takes_more_noise(tmp_path: Path) -> None:
    given = planned_target(tmp_path, "ring")
    values = [target_of(given, epsilon).value for epsilon in (0.01, 0.1, 1.0, 10.0, 100.0)]
    assert values == sorted(values, reverse=True)


def test_the_noise_in_the_spec_does_not_matter(tmp_path: Path) -> None:
    small_noise, large_noise = (planned_target(tmp_path, "ring", f"noise.sigma={sigma}") for sigma in (0.01, 100.0))
    assert target_of(small_noise, 1.0).value == pytest.approx(target_of(large_noise, 1.0).value, rel=1e-6)


def test_what_no_noise_can_give_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="infinite"):
        target_of(planned_target(tmp_path, "ring", "noise.closing=false"), 1.0)
    with pytest.raises(Refused, match="protects nobody"):
        target_of(planned_target(tmp_path, "bare"), 1.0)
    with pytest.raises(Refused, match="cannot be met"):
        target_of(planned_target(tmp_path, "sparse"), 1e-10)


@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 0.4999, 0.5])
def test_what_estimates_cost_no_noise_takes_away(epsilon: float) -> None:
    with pytest.raises(Refused, match=r"the smallest .* is 0\.5"):
        target_of(planned_of(ESTIMATED), epsilon)


@pytest.mark.parametrize("epsilon", [0.501, 0.6, 5.0])
def test_above_what_estimates_cost_noise_is_found_for_the_rest(epsilon: float) -> None:
    target = target_of(planned_of(ESTIMATED), epsilon)
    assert 0.5 + (epsilon - 0.5) * 0.99 <= target.reached <= epsilon
    assert 0.0 < target.local_value < float("inf")


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf"), 1e5])
def test_impossible_epsilons_are_refused(tmp_path: Path, epsilon: float) -> None:
    with pytest.raises(UsageError, match="--target-epsilon"):
        target_of(planned_target(tmp_path, "ring"), epsilon)


@pytest.mark.parametrize(
    "noise", ['"randomized_response"\nepsilon = 3.0', '"laplace"\nepsilon = 1.0', '"privunit"\nepsilon = 2.0']
)
def test_of_shuffling_the_curator_learns_no_more_either(tmp_path: Path, noise: str) -> None:
    text = shuffle(60, terms="rounds = 5").replace('"randomized_response"\nepsilon = 3.0', noise)
    if "response" not in noise:
        data = '"unit_mixture"' if "privunit" in noise else '"uniform"\nclip = [0.0, 1.0]'
        text = text.replace('"categories"', data).replace('"histogram"\ncategories = 3', '"mean"')
    given = planned_of(p2pdp.load_spec(small.spec_file(tmp_path, text)))
    target = target_of(given, 0.5)
    assert target.observers == ("node", "curator")
    assert "curator" in target.against
    assert 0.49 <= target.reached <= 0.5
    smaller = target.local_value < target.value if target.parameter == "epsilon" else target.value < target.local_value
    assert smaller, "a hidden report needs less noise than one that everybody sees"


def test_learners_by_gossip_need_noise_for_all_their_gradients() -> None:
    """Three of them, at twice the clip: the local ceiling is the bound, so it is what local privacy needs."""
    given = planned_of(prepared(gossip_learning(5, "changing"))[0].spec)
    found = target_of(given, 2.0)
    assert found.reached <= 2.0
    assert found.local_value == pytest.approx(2.0 * 3**0.5 / gaussian.mu_of_curve(2.0, DELTA), rel=1e-6)
    assert found.local_value <= found.value <= found.local_value * 1.01


def test_local_noise_of_a_learner_is_of_one_row_where_that_is_protected(tmp_path: Path) -> None:
    task = 'kind = "logistic_regression"\nclip = 0.7\nrate = 0.1\nrounds = 10'
    (tmp_path / "spec.toml").write_text(gossip_learning(6, "ring", task=task) + 'unit = "record"\n')
    planned = planned_of(load_spec(tmp_path / "spec.toml"))
    found, fewest = target_of(planned, 2.0), planned.run.plan.descent.records.fewest
    assert fewest > 1
    one_row = 2.0 * 0.7 / fewest
    assert found.local_value == pytest.approx(10**0.5 * one_row / gaussian.mu_of_curve(2.0, DELTA), rel=1e-4)
    assert found.reached <= 2.0
