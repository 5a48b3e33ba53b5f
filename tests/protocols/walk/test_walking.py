from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.draws import Mechanism
from p2pdp.core.events import Excluded
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.messages import BEGIN, COMMON, GO, LOST, RESULT, TOKEN, TOTAL
from p2pdp.core.spec import Spec
from p2pdp.core.step import NOTHING, Custody, Fault, Message, Send, Step
from p2pdp.core.values import LinearForm, Source
from p2pdp.protocols import protocol
from p2pdp.protocols.walk.walking import VALUE_MAX, Walk, WalkPlan, check_token
from p2pdp.tasks.inputs import CategoryInputs, Inputs, NumberInputs, SymbolicInputs
from p2pdp.topology.graphs import make_graph
from tests.support.walk_world import (
    ScriptedDraws,
    SeededDraws,
    SymbolDraws,
    Visit,
    World,
    histogram_spec,
    make_world,
    sum_spec,
)

SIZES = [1, 2, 3, 5]


def plan_of(spec: Spec, dimensions: int = 1) -> Any:
    return protocol(spec.run.protocol).plan(spec, spec.run.nodes, dimensions)


def world_of(spec: Spec, inputs: Any, draws: Any = SeededDraws, dimensions: int = 1) -> World:
    n = spec.run.nodes
    graph = make_graph(spec.graph, n, 0, None)
    return make_world(
        protocol(spec.run.protocol), plan_of(spec, dimensions), inputs, draws, lambda user: graph.neighbours[user]
    )


def numbers(user: Peer) -> Inputs:
    """Three values a user, each a number of its own."""
    return NumberInputs([10 ** (3 * user) * (visit + 1) for visit in range(3)], 1)


def vectors(user: Peer) -> Inputs:
    return NumberInputs([np.array([user + 1, -(10**6), visit], dtype=np.int64) for visit in range(3)], 3)


def contributed(world: World, inputs: Any) -> Any:
    """What the users added, by the record of their visits."""
    counts = Counter(visit.user for visit in world.visits)
    return sum(inputs(user).contribution(visit) for user, count in counts.items() for visit in range(count))


def one_token(visits: list[Visit], item: int = 0) -> list[Visit]:
    return sorted((visit for visit in visits if visit.item == item), key=lambda visit: visit.step)


SPECS = [
    *(sum_spec(n=n, laps=laps) for n in SIZES for laps in (1, 2, 4)),
    *(sum_spec(n=n, laps=3, tokens=n) for n in SIZES),
    *(sum_spec(n=n, laps=2, closing=False) for n in SIZES),
    *(sum_spec(n=n, laps=2, share=True) for n in SIZES),
    *(sum_spec(n=n, laps=2, mechanism="none") for n in SIZES),
    *(sum_spec(n=n, laps=2, mechanism="laplace", sigma=1.0) for n in SIZES),
    *(sum_spec(n=n, hops=hops) for n in SIZES for hops in (1, 2, 9)),
    *(sum_spec(n=n, hops=7, tokens=3) for n in SIZES),
    *(sum_spec(n=n, hops=9, kind="path") for n in SIZES),
    *(sum_spec(n=n, hops=9, kind="path", tokens=2) for n in SIZES),
]


@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize(("inputs", "dimensions"), [(numbers, 1), (vectors, 3)])
def test_the_totals_are_the_contributions_and_the_noise_to_the_last_digit(
    spec: Spec, inputs: Any, dimensions: int
) -> None:
    world = world_of(spec, inputs, dimensions=dimensions).walk()
    assert sorted(world.totals) == list(range(spec.options.tokens))
    published = protocol(spec.run.protocol).publish(world.plan, [world.totals[item] for item in sorted(world.totals)])
    expected = contributed(world, inputs) + sum(value for _, value in world.drawn)
    assert np.array_equal(published, expected)
    assert not world.faults
    if dimensions > 1:
        assert all(total.dtype == np.int64 for total in world.totals.values())


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_each_step_of_each_token_is_held_exactly_once(spec: Spec) -> None:
    world = world_of(spec, numbers).walk()
    plan: WalkPlan = world.plan
    for item in range(plan.tokens):
        visits = one_token(world.visits, item)
        assert [visit.step for visit in visits] == list(range(1, plan.steps + 1))
        assert visits[0].before == 0
        for before, after in itertools.pairwise(visits):
            assert after.sender == before.user


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_what_leaves_a_user_is_in_custody_and_says_what_custody_says(spec: Spec) -> None:
    world = world_of(spec, numbers).walk()
    for sender, send in world.sends:
        assert sender != send.to
        assert send.custody == Custody(*send.message.fields)


# [CB20, Algorithm 1]


def algorithm_1(n: int, laps: int) -> list[int]:
    """The steps at which the paper's listing calls Perturb. For n = 1 its counter would become -1: it stays 0."""
    noised, a, step = [], 0, 0
    for _ in range(laps):
        for _ in range(n):
            step += 1
            if a == 0:
                noised.append(step)
                a = max(0, n - 2)
            else:
                a -= 1
    return noised


@pytest.mark.parametrize("n", [*SIZES, 4, 7, 30])
@pytest.mark.parametrize("laps", [1, 2, 3, 5])
def test_algorithm_1_adds_noise_every_n_minus_1_contributions(n: int, laps: int) -> None:
    """[CB20, Algorithm 1]."""
    plan = plan_of(sum_spec(n=n, laps=laps, closing=False))
    assert [step for step in range(1, plan.steps + 1) if plan.draws_at(step)] == algorithm_1(n, laps)


@pytest.mark.parametrize("n", [*SIZES, 4, 7])
@pytest.mark.parametrize("laps", [1, 2, 3, 5])
def test_theorem_1_prints_one_draw_too_few(n: int, laps: int) -> None:
    """[CB20, Theorem 1] counts the draws of [CB20, Algorithm 1].

    guide/accounting.md, section 2: ceil(Kn / (n-1)) draws (n = 1: K), and one closing draw of ours.
    """
    draws = math.ceil(laps * n / (n - 1)) if n > 1 else laps
    open_ended = world_of(sum_spec(n=n, laps=laps, closing=False), numbers).walk()
    assert len(open_ended.drawn) == draws
    closed = world_of(sum_spec(n=n, laps=laps), numbers).walk()
    assert len(closed.drawn) == draws + 1


@pytest.mark.parametrize("n", SIZES)
def test_the_closing_draw_is_made_by_the_last_holder_before_the_total_leaves_it(n: int) -> None:
    world = world_of(sum_spec(n=n, laps=3), numbers).walk()
    last = one_token(world.visits)[-1]
    assert last.user == n - 1
    assert world.plan.draws_at(world.plan.steps)[-1] == world.plan.noise


@pytest.mark.parametrize(("n", "laps"), [(1, 3), (2, 2), (5, 3)])
def test_the_ring_is_gone_round_in_order(n: int, laps: int) -> None:
    world = world_of(sum_spec(n=n, laps=laps), numbers).walk()
    assert [visit.user for visit in one_token(world.visits)] == list(range(n)) * laps
    assert not any(draws.chosen for draws in world.draws.values())


@pytest.mark.parametrize(("n", "tokens"), [(5, 1), (5, 2), (5, 3), (5, 5), (7, 3), (1, 1)])
def test_token_j_of_k_starts_at_jn_over_k(n: int, tokens: int) -> None:
    world = world_of(sum_spec(n=n, laps=2, tokens=tokens), numbers).walk()
    for item in range(tokens):
        visits = one_token(world.visits, item)
        start = math.floor(item * n / tokens)
        assert [visit.user for visit in visits] == [(start + hop) % n for hop in range(2 * n)]
        assert visits[0].sender == start  # `own`: the token begins where it is


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_remark_1_shares_the_noise_among_all_users_but_the_first(n: int) -> None:
    """[CB20, Remark 1], with sigma / sqrt(n-1): a user's own share hides nothing from itself; printed is sqrt(n)."""
    laps = 3
    plan = plan_of(sum_spec(n=n, laps=laps, share=True, sigma=2.0))
    unit = math.ldexp(1.0, plan.grid_exponent)
    scales = [[draw.scale * unit for draw in plan.draws_at(step)] for step in range(1, plan.steps + 1)]
    share = pytest.approx(2.0 / math.sqrt(n - 1))
    assert scales[0] == [pytest.approx(2.0)]
    assert scales[1:-1] == [[share]] * (laps * n - 2)
    assert scales[-1] == [share, pytest.approx(2.0)]


# Algorithm 3


def test_algorithm_3_draws_the_next_holder_from_all_users_the_present_one_included() -> None:
    """[CB20, Algorithm 3]."""
    choices = [2, 2, 0, 3, 1, 1]
    spec = sum_spec(n=4, hops=7)
    shared = ScriptedDraws(choices)
    world = make_world(protocol("walk.sum"), plan_of(spec), numbers, lambda _: shared).walk()
    assert [visit.user for visit in one_token(world.visits)] == [0, *choices]
    assert [options for options, _ in shared.chosen] == [4] * 6  # T contributions are T - 1 moves
    assert [visit.step for visit in world.visits if visit.user == visit.sender] == [1, 3, 7]


def test_algorithm_3_noises_every_contribution() -> None:
    """[CB20, Algorithm 3]."""
    world = world_of(sum_spec(n=4, hops=9), numbers).walk()
    assert [mechanism for mechanism, _ in world.drawn] == [world.plan.noise] * 9
    assert not world.plan.closing


def test_several_tokens_of_a_random_walk_are_handed_out_by_user_0() -> None:
    choices = [3, 0, 2, 1, 1, 1]
    shared = ScriptedDraws(choices)
    spec = sum_spec(n=4, hops=2, tokens=3)
    world = make_world(protocol("walk.sum"), plan_of(spec), numbers, lambda _: shared)
    world.begin()
    world.run()
    first = {visit.item: (visit.user, visit.sender) for visit in world.visits if visit.step == 1}
    assert {item: sender for item, (_, sender) in first.items()} == dict.fromkeys(range(3), 0)
    assert first[0][0] == 3
    assert len(world.visits) == 6


def test_on_a_graph_the_token_moves_along_edges_only() -> None:
    spec = sum_spec(n=5, hops=60, kind="path")
    world = world_of(spec, numbers).walk()
    moves = [(visit.sender, visit.user) for visit in one_token(world.visits)[1:]]
    assert all(abs(sender - user) == 1 for sender, user in moves)
    for user, draws in world.draws.items():
        assert {options for options, _ in draws.chosen} <= {1 if user in (0, 4) else 2}


@pytest.mark.parametrize("kind", ["complete", "path"])
def test_next_holders_are_uniform(kind: str) -> None:
    """Expected are 4000 of 16,000; five and a half standard deviations are 301 (an error below 1e-6)."""
    spec = sum_spec(n=4 if kind == "complete" else 3, hops=2, kind=kind)
    plan, counts = plan_of(spec), Counter[Peer]()
    draws = SeededDraws(7)
    for _ in range(16_000):
        walk = Walk(plan, 1, (0, 2), numbers(1))
        (send,) = walk.receive(0, Message(TOKEN, (0, 1), 0), 0.0, draws).sends
        counts[send.to] += 1
    options = 4 if kind == "complete" else 2
    assert len(counts) == options
    spread = 5.5 * math.sqrt(16_000 * (1 / options) * (1 - 1 / options))
    assert all(abs(count - 16_000 / options) < spread for count in counts.values())


# The same machines over symbols


@st.composite
def walks(draw: st.DrawFn) -> Spec:
    n = draw(st.integers(1, 6))
    kind = draw(st.sampled_from(["ring", "complete", "path", "histogram ring", "histogram complete"]))
    ring = kind.endswith("ring")
    tokens = draw(st.integers(1, n if ring else 4))
    laps, hops = (draw(st.integers(1, 4)), None) if ring else (None, draw(st.integers(1, 12)))
    if kind.startswith("histogram"):
        return histogram_spec(n=n, laps=laps, hops=hops, tokens=tokens, epsilon=draw(st.sampled_from([0.0, 1.0])))
    noise: dict[str, Any] = {"mechanism": draw(st.sampled_from(["gaussian", "laplace", "none"]))}
    if noise["mechanism"] != "none":
        noise["sigma"] = 1.0
    if ring:
        noise |= {"closing": draw(st.booleans()), "share": noise["mechanism"] == "gaussian" and draw(st.booleans())}
    return sum_spec(n=n, laps=laps, hops=hops, kind="complete" if ring else kind, tokens=tokens, **noise)


@given(spec=walks(), values=st.integers(1, 3), seed=st.integers(0, 1000))
def test_over_symbols_the_total_holds_each_contribution_and_each_draw_once(spec: Spec, values: int, seed: int) -> None:
    world = world_of(spec, lambda user: SymbolicInputs(user, values), lambda peer: SymbolDraws(peer, seed)).walk()
    published = protocol(spec.run.protocol).publish(world.plan, [world.totals[item] for item in sorted(world.totals)])
    visits = Counter(visit.user for visit in world.visits)
    assert visits.total() == world.plan.tokens * world.plan.steps
    expected: Counter[Source] = Counter()
    for user, count in visits.items():
        for visit in range(count):
            if world.plan.noise.name == "randomized_response":
                expected[Source("report", user, visit)] += 1
            else:
                expected[Source("input", user, visit % values)] += 1
    for peer, draws in world.draws.items():
        for number, (mechanism, _) in enumerate(draws.drawn):
            if mechanism.name != "randomized_response":  # in its report
                expected[Source("draw", peer, number)] += 1
    assert published.expand() == dict(expected)


@given(spec=walks(), seed=st.integers(0, 100))
def test_over_symbols_a_walk_takes_the_same_way(spec: Spec, seed: int) -> None:
    live: Any = numbers if spec.run.protocol == "walk.sum" else lambda user: CategoryInputs([user % 3], 3)
    first = world_of(spec, live, lambda peer: SeededDraws(seed + peer)).walk()
    second = world_of(spec, lambda user: SymbolicInputs(user, 3), lambda peer: SymbolDraws(peer, seed + peer)).walk()
    ways = [[(v.item, v.step, v.user, v.sender) for v in world.visits] for world in (first, second)]
    assert ways[0] == ways[1]
    assert [m for m, _ in first.drawn] == [m for m, _ in second.drawn]


def test_each_token_on_its_way_holds_exactly_what_was_added_before() -> None:
    spec = sum_spec(n=3, laps=2)
    world = world_of(spec, lambda user: SymbolicInputs(user, 9), lambda peer: SymbolDraws(peer, 0)).walk()
    holders = [visit.user for visit in one_token(world.visits)]
    for visit in one_token(world.visits):
        held = visit.before.expand()
        assert sum(1 for source in held if source.kind == "input") == visit.step - 1
        assert {source.peer for source in held} == set(holders[: visit.step - 1])


# Misbehaviour


RING = plan_of(sum_spec(n=5, laps=2))
WIDE = plan_of(sum_spec(n=5, laps=2), 3)
COMPLETE = plan_of(sum_spec(n=5, hops=10))


def problem(plan: WalkPlan, message: Message) -> str | None:
    return COMMON.problem(message) or check_token(plan, message)


@pytest.mark.parametrize("kind", [TOKEN, TOTAL])
@pytest.mark.parametrize(
    "fields",
    [
        *((), (0,), (0, 1, 2), ("0", 1), (0, "1"), (0, 1.0), (0, None), (True, 1), (0, True), ([0], 1)),
        *((-1, 1), (1, 1), (0, 12), (0, -1), (0, 2**70)),
    ],
)
def test_malformed_fields_are_refused(kind: str, fields: tuple[Any, ...]) -> None:
    assert problem(RING, Message(kind, fields, 5)) == "malformed"


def test_steps_are_checked_for_tokens_and_totals() -> None:
    assert [problem(RING, Message(TOKEN, (0, step), 5)) for step in (0, 1, 10, 11)] == [
        "malformed",
        None,
        None,
        "malformed",
    ]
    assert [problem(RING, Message(TOTAL, (0, step), 5)) for step in (0, 1, 10, 11)] == ["malformed"] * 3 + [None]


@pytest.mark.parametrize(
    "value",
    [5.0, b"5", "5", True, [5], np.int64(5), np.array([5]), np.array(5), 2**63, VALUE_MAX + 1, -VALUE_MAX - 1],
    ids=repr,
)
def test_bad_numbers_are_refused(value: Any) -> None:
    assert problem(RING, Message(TOKEN, (0, 1), value)) == "bad_value"


@pytest.mark.parametrize(
    "value",
    [
        5,
        [1, 2, 3],
        np.zeros(3),
        np.zeros(3, dtype=np.uint64),
        np.zeros(3, dtype=bool),
        np.zeros(2, dtype=np.int64),
        np.zeros(4, dtype=np.int64),
        np.zeros((3, 1), dtype=np.int64),
        np.zeros((), dtype=np.int64),
        np.array([0, 0, VALUE_MAX + 1]),
        np.array([-(2**63), 0, 0]),
    ],
    ids=repr,
)
def test_bad_vectors_are_refused(value: Any) -> None:
    assert problem(WIDE, Message(TOKEN, (0, 1), value)) == "bad_value"


def test_good_values_are_taken_up_to_the_limit() -> None:
    for value in (0, -5, VALUE_MAX, -VALUE_MAX):
        assert problem(RING, Message(TOKEN, (0, 1), value)) is None
        assert problem(WIDE, Message(TOKEN, (0, 1), np.array([value, 0, 0]))) is None


@pytest.mark.parametrize(
    ("low", "high", "sigma"), [(0.0, 1.0, 1e-3), (0.0, 1.0, 1e3), (-1e3, 1e-3, 1.0), (5.0, 6.0, 1.0)]
)
def test_no_honest_sum_comes_near_the_limit(low: float, high: float, sigma: float) -> None:
    spec = sum_spec(n=50, laps=20, sigma=sigma)
    plan = plan_of(dataclasses.replace(spec, data=dataclasses.replace(spec.data, clip=(low, high))))
    unit = math.ldexp(1.0, plan.grid_exponent)
    largest = 1000 * (max(abs(low), abs(high)) / unit + 1) + 64 * sigma / unit * math.sqrt(1000)
    assert largest < VALUE_MAX / 2


def test_messages_that_are_no_tokens_are_not_this_checks_business() -> None:
    assert check_token(RING, Message("hello", ("x",), None)) is None


FAULT = Step(faults=(Fault("unexpected_message", 3),))


@pytest.mark.parametrize(
    ("plan", "sender"),
    [(RING, 2), (RING, 3), (RING, 0), (RING, BOOTSTRAP), (RING, CURATOR), (COMPLETE, BOOTSTRAP), (COMPLETE, CURATOR)],
)
def test_a_token_from_the_wrong_sender_is_a_fault(plan: WalkPlan, sender: Peer) -> None:
    draws = SeededDraws(0)
    walk = Walk(plan, 2 if sender != 2 else 4, (), numbers(2))
    step = walk.receive(sender, Message(TOKEN, (0, 3), 5), 0.0, draws)
    assert step == Step(faults=(Fault("unexpected_message", sender),))
    assert draws.drawn == draws.chosen == []


def test_on_a_graph_only_neighbours_may_pass_a_token() -> None:
    plan = plan_of(sum_spec(n=5, hops=10, kind="path"))
    walk = Walk(plan, 2, (1, 3), numbers(2))
    assert walk.receive(0, Message(TOKEN, (0, 3), 5), 0.0, SeededDraws(0)).faults == (Fault("unexpected_message", 0),)
    assert walk.receive(3, Message(TOKEN, (0, 3), 5), 0.0, SeededDraws(0)).faults == ()


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_replayed_or_older_step_is_a_fault_and_adds_nothing(step: int) -> None:
    draws = SeededDraws(0)
    walk = Walk(COMPLETE, 2, (), numbers(2))
    first = walk.receive(3, Message(TOKEN, (0, 3), 5), 0.0, draws)
    assert first.sends
    drawn = list(draws.drawn)
    assert walk.receive(3, Message(TOKEN, (0, step), 5), 0.0, draws) == FAULT
    assert draws.drawn == drawn
    assert walk.receive(3, Message(TOKEN, (0, 4), 5), 0.0, draws).sends


def test_beginning_twice_is_a_fault() -> None:
    world = world_of(sum_spec(n=3, laps=2), numbers).walk()
    total = dict(world.totals)
    world.post(0, BOOTSTRAP, Message(BEGIN, (0, 0)))
    world.run()
    assert world.faults == [(0, Fault("unexpected_message", BOOTSTRAP))]
    assert world.totals == total


@pytest.mark.parametrize("message", [Message(BEGIN, (0, 0)), Message(LOST, (0, 2)), Message(TOTAL, (0, 11), 5)])
def test_only_bootstrap_gives_orders(message: Message) -> None:
    assert Walk(COMPLETE, 0, (), numbers(0)).receive(3, message, 0.0, SeededDraws(0)) == FAULT


@pytest.mark.parametrize("kind", ["", "hello", GO, RESULT])
def test_unknown_messages_are_faults(kind: str) -> None:
    for sender in (3, BOOTSTRAP, CURATOR):
        step = Walk(COMPLETE, 0, (), numbers(0)).receive(sender, Message(kind), 0.0, SeededDraws(0))
        assert step == Step(faults=(Fault("unexpected_message", sender),))


def test_a_late_wake_is_harmless() -> None:
    walk, draws = Walk(COMPLETE, 0, (), numbers(0)), SeededDraws(0)
    assert walk.start(0.0, draws) == walk.wake(99.0, draws) == NOTHING
    assert walk.finished is False
    assert draws.drawn == draws.chosen == []


def test_the_text_of_a_walk_shows_its_user_only() -> None:
    assert repr(Walk(COMPLETE, 3, (), numbers(3))) == "Walk(user=3)"


# Going round


def stranded(spec: Spec, choices: list[int]) -> tuple[World, ScriptedDraws]:
    """A walk over symbols whose second holder, user 2, is gone: the token is lost with it."""
    shared = ScriptedDraws(choices)
    noise = SymbolDraws(9, 0)
    shared.noise = noise.noise  # type: ignore[method-assign]
    graph = make_graph(spec.graph, spec.run.nodes, 0, None)
    world = make_world(
        protocol("walk.sum"),
        plan_of(spec),
        lambda user: SymbolicInputs(user, 1),
        lambda _: shared,
        lambda user: graph.neighbours[user],
    )
    world.gone = {2}
    world.walk()
    assert [visit.user for visit in world.visits] == [0]
    shared.drawn = noise.drawn
    return world, shared


def lose(world: World, *, step: int = 2) -> None:
    for user in world.machines:
        if user != 2:
            world.happens(user, Excluded(2))
    world.post(0, BOOTSTRAP, Message(LOST, (0, step)))
    world.run()


def test_a_lost_token_is_sent_elsewhere_with_the_same_value_and_no_new_noise() -> None:
    world, draws = stranded(sum_spec(n=4, hops=3), [2, 2, 0])
    assert len(draws.drawn) == 1
    lose(world)
    (_, first), (_, second) = (sent for sent in world.sends if sent[1].message.fields == (0, 2))
    assert (first.to, second.to) == (2, 3)  # the third of those who are left: users 0, 1 and 3
    assert second.message == first.message
    assert second.custody == Custody(0, 2)
    assert [options for options, _ in draws.chosen] == [4, 3, 3]
    assert [visit.user for visit in one_token(world.visits)] == [0, 3, 0]
    assert world.totals[0].expand() == {
        Source("input", 0, 0): 2.0,
        Source("input", 3, 0): 1.0,
        **{Source("draw", 9, number): 1.0 for number in range(3)},
    }
    assert not world.faults


def test_the_guardian_itself_may_be_the_one_elsewhere() -> None:
    world, draws = stranded(sum_spec(n=3, hops=3), [2, 0, 1])
    lose(world)
    assert [visit.user for visit in one_token(world.visits)] == [0, 0, 1]
    assert world.totals[0].expand()[Source("input", 0, 0)] == 2.0
    assert len(draws.drawn) == 3


def test_on_a_graph_elsewhere_is_another_neighbour() -> None:
    spec = dataclasses.replace(sum_spec(n=3, hops=3), graph=dataclasses.replace(sum_spec().graph, kind="star"))
    plan = plan_of(spec)
    assert plan.order == "graph"
    walk, scripted = Walk(plan, 0, (1, 2), numbers(0)), ScriptedDraws([1, 0])
    (sent,) = walk.receive(1, Message(TOKEN, (0, 2), 5), 0.0, scripted).sends
    assert sent.to == 2
    assert walk.excluded(2, 0.0, scripted) == NOTHING
    (again,) = walk.receive(BOOTSTRAP, Message(LOST, (0, 3)), 0.0, scripted).sends
    assert again == Send(1, sent.message, Custody(0, 3))
    assert scripted.chosen == [(2, 1), (1, 0)]


def test_with_a_holder_without_neighbours_the_token_stays() -> None:
    plan = plan_of(sum_spec(n=3, hops=5, kind="path"))
    walk, draws = Walk(plan, 0, (1,), numbers(0)), ScriptedDraws([0])
    (sent,) = walk.receive(1, Message(TOKEN, (0, 2), 5), 0.0, draws).sends
    assert walk.excluded(1, 0.0, draws) == NOTHING
    step = walk.receive(BOOTSTRAP, Message(LOST, (0, 3)), 0.0, draws)
    assert step == Step(sends=(Send(0, sent.message),))


@pytest.mark.parametrize("order", [(0, 3), (0, 1), (1, 2)])
def test_what_is_not_lost_is_not_sent_again(order: tuple[int, int]) -> None:
    """Another step than that of the last send, or another token, is an order too late or too early."""
    world, draws = stranded(sum_spec(n=4, hops=3), [2])
    world.happens(0, Excluded(2))
    sends = list(world.sends)
    world.post(0, BOOTSTRAP, Message(LOST, order))
    world.run()
    assert world.faults == [(0, Fault("unexpected_message", BOOTSTRAP))]
    assert world.sends == sends
    assert len(draws.drawn) == 1


def test_a_token_whose_receiver_is_not_out_is_not_sent_again() -> None:
    world, _ = stranded(sum_spec(n=4, hops=3), [2])
    world.post(0, BOOTSTRAP, Message(LOST, (0, 2)))
    world.run()
    assert world.faults == [(0, Fault("unexpected_message", BOOTSTRAP))]


def test_a_second_order_for_the_same_loss_sends_nothing() -> None:
    world, _ = stranded(sum_spec(n=4, hops=3), [2, 2, 0])
    lose(world)
    sends = list(world.sends)
    world.post(0, BOOTSTRAP, Message(LOST, (0, 2)))
    world.run()
    assert world.sends == sends
    assert len(world.faults) == 1


def test_nobody_out_is_chosen_or_listened_to() -> None:
    plan = plan_of(sum_spec(n=4, hops=60))
    walk, draws = Walk(plan, 0, (), numbers(0)), SeededDraws(3)
    for peer in (1, 3):
        assert walk.excluded(peer, 0.0, draws) == NOTHING
    chosen = set()
    for step in range(1, 60):
        (send,) = walk.receive(2, Message(TOKEN, (0, step), 5), 0.0, draws).sends
        chosen.add(send.to)
    assert chosen == {0, 2}
    assert {options for options, _ in draws.chosen} == {2}
    assert walk.receive(3, Message(TOKEN, (0, 60), 5), 0.0, draws) == FAULT


def test_only_random_walks_can_go_round() -> None:
    assert (RING.needed, COMPLETE.needed) == (5, 1)
    assert plan_of(sum_spec(n=5, hops=10, kind="path")).needed == 1


def test_dummies_name_what_they_are_drawn_from() -> None:
    plan = plan_of(histogram_spec(n=5, laps=1))
    assert plan.dummy_mechanism == Mechanism("uniform_counts", float(plan.dummies), 3)


def test_linear_forms_pass_through_unlooked_at() -> None:
    form = LinearForm.of(Source("unknown", 1, 0))
    walk = Walk(RING, 1, (), SymbolicInputs(1, 1))
    (send,) = walk.receive(0, Message(TOKEN, (0, 2), form), 0.0, SymbolDraws(1, 0)).sends
    assert send.message.value.expand() == {Source("unknown", 1, 0): 1.0, Source("input", 1, 0): 1.0}


def milked(walk: Any, plan: WalkPlan, draws: Any, times: int, value: Any) -> tuple[Any, list[Fault]]:
    """A peer sends the same user one token at ever later steps; what the last one left with, and all faults."""
    faults: list[Fault] = []
    for step in range(1, times + 1):
        done = walk.receive(1, Message(TOKEN, (0, step), value), 0.0, draws)
        (send,) = done.sends
        faults += done.faults
        value = send.message.value
    return value, faults


@pytest.mark.parametrize("kind", ["complete", "path"])
def test_a_user_contributes_its_value_no_more_often_than_its_limit(kind: str) -> None:
    spec = sum_spec(n=5, hops=200, kind=kind)
    graph = make_graph(spec.graph, 5, 0, None)
    found = protocol("walk.sum")
    plan = found.plan(spec, 5, 1, found.graph_facts(spec, graph))
    limit = plan.contributions_max
    assert 40 < limit < 180
    walk = Walk(plan, 0, graph.neighbours[0], SymbolicInputs(0, 200))
    left, faults = milked(walk, plan, SymbolDraws(0, 0), 199, LinearForm.of(Source("input", 1, 0)))
    sources = Counter(source.kind for source in left.expand() if source.peer == 0)
    assert sources["input"] == limit
    assert sources["draw"] == 199
    assert [fault.kind for fault in faults] == ["too_many_visits"] * (199 - limit)


def test_the_usual_step_in_one_piece_stops_at_the_limit_too() -> None:
    plan = plan_of(sum_spec(n=5, hops=200))
    walk, draws = Walk(plan, 0, (1, 2, 3, 4), NumberInputs([7], 1)), SeededDraws(0)
    passed = [walk.hop(1, 0, step, 0, draws) is not None for step in range(1, 200)]
    assert passed == [True] * plan.contributions_max + [False] * (199 - plan.contributions_max)
    assert len(draws.drawn) == plan.contributions_max


def test_beyond_the_limit_a_category_is_a_uniformly_random_one() -> None:
    plan = dataclasses.replace(plan_of(histogram_spec(n=3, hops=60)), visits_max=2)
    walk, draws = Walk(plan, 0, (1, 2), CategoryInputs([1], 3)), SeededDraws(0)
    left, _ = milked(walk, plan, draws, 20, np.zeros(3, dtype=np.int64))
    assert left.sum() == 20
    assert Counter(mechanism.name for mechanism, _ in draws.drawn) == {"randomized_response": 2, "uniform_counts": 18}
    assert {mechanism.scale for mechanism, _ in draws.drawn if mechanism.name == "uniform_counts"} == {1.0}


@pytest.mark.parametrize(("tokens", "laps"), [(1, 3), (2, 3), (5, 1)])
def test_on_a_ring_each_step_has_one_holder(tokens: int, laps: int) -> None:
    """So a user contributes once in each lap of each token, however tokens come to it."""
    n = 5
    plan = plan_of(sum_spec(n=n, laps=laps, tokens=tokens))
    walk = Walk(plan, 2, (1, 3), SymbolicInputs(2, 50))
    taken, draws = 0, SymbolDraws(2, 0)
    for item, step in itertools.product(range(tokens), range(1, plan.steps + 1)):
        done = walk.receive(1, Message(TOKEN, (item, step), LinearForm((), ())), 0.0, draws)
        assert len(done.sends) + len(done.faults) == 1
        taken += len(done.sends)
    assert taken == plan.contributions_max == laps * tokens
