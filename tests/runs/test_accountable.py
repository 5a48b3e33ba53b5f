"""No count that a spec may hold makes a plan take without end: it is computed soon, or refused."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from p2pdp.core.errors import P2pdpError, Refused, UsageError
from p2pdp.core.spec import Spec
from p2pdp.files.checks import applies
from p2pdp.files.schema import SECTIONS
from p2pdp.files.spec import load_spec
from p2pdp.protocols.walk.sums import RING_MAX
from p2pdp.runs.accountable import check_accountable
from p2pdp.runs.plan import plan_spec
from p2pdp.runs.reckoning import Reckoner, Reckoning
from tests.support.readers import COUNTS, given
from tests.support.sources import TOP

SAMPLES = TOP / "deploy" / "samples"
GRID = "complete_sum", ('graph.kind="grid"',)
CASES: list[tuple[str, tuple[str, ...]]] = [*((path.stem, ()) for path in sorted(SAMPLES.glob("*.toml"))), GRID]
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
    return load_spec(SAMPLES / f"{sample}.toml", overrides)


def counts_in(spec: Spec) -> list[str]:
    return [name for name in COUNTS if applies(spec, name) and getattr(spec, name.partition(".")[0]) is not None]


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
        value = given(SECTIONS[section].readers[key], COUNTS[name].most)
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
