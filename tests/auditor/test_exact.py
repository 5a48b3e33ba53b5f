"""What accounts of pairs share; `test_exact.py` and `test_iteration.py` test their leaks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.auditor import exact
from p2pdp.auditor.audit import audit_run
from p2pdp.auditor.context import AccountResult, AuditContext
from p2pdp.auditor.exact import ExactAuditor, Leaks, PairClaims, account_of_pairs, exact_account
from p2pdp.core.claims import Method
from p2pdp.core.draws import Mechanism
from p2pdp.core.ids import CURATOR
from p2pdp.core.messages import COMMON, TOKEN, TOTAL, MessageType, Rounds, Value
from p2pdp.core.step import NOTHING, Message, Send, Step
from p2pdp.core.values import ZERO_FORM, LinearForm, Source
from p2pdp.ledger.records import OWN, RECEIVED, public_message
from p2pdp.mechanisms.grid import Grid
from p2pdp.privacy.linear import view as gaussian_view
from p2pdp.protocols import protocol
from p2pdp.protocols.contract import NO_FACTS, PlanDefaults, ProtocolDefaults
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.evidence import Recorded
from p2pdp.replay.transcript import Transcript
from p2pdp.sim.faults import Crash
from p2pdp.tasks.inputs import NumberInputs
from tests.support.learners import learning
from tests.support.replay_oracle import leaks, seen_by
from tests.support.runs import DELTA, HISTOGRAM, Run, quiet, ring, run_of, walk


def node_leaks(run: Run) -> Any:
    """In units of one contribution's own variance, indexed [user, observer]."""
    return run.audit().leak


def role_leak(run: Run, observer: str) -> float:
    """The largest leak to a role, in the same units."""
    claim = next(claim for claim in run.audit().claims if claim.observer == observer and claim.method == "exact")
    assert claim.mu_max is not None
    plan = run.plan.plan
    return (claim.mu_max * math.ldexp(plan.noise.scale, plan.grid_exponent)) ** 2


# Section 2 of guide/accounting.md: the ring sum.


@pytest.mark.parametrize("n", range(1, 8))
@pytest.mark.parametrize("laps", range(1, 6))
def test_the_ring_leaks_what_its_closed_form_says(n: int, laps: int) -> None:
    run = quiet(ring(n, laps))
    found, hops, spacing = node_leaks(run), laps * n, max(1, n - 1)
    draws = laps if n == 1 else math.ceil(hops / (n - 1))
    for user in range(n):
        assert math.isnan(found[user, user])
        for observer in set(range(n)) - {user}:
            after = sum(hop % spacing == 0 for hop in range((laps - 1) * n + observer + 1, hops))
            expected = laps if user < observer else laps - 1 + 1 / (1 + after)
            assert found[user, observer] == pytest.approx(expected, rel=1e-9)
            assert after in (0, 1) or user < observer
    for role in ("curator", "public"):
        assert role_leak(run, role) == pytest.approx(laps**2 / (draws + 1), rel=1e-9)


@pytest.mark.parametrize("n", range(2, 8))
@pytest.mark.parametrize("laps", range(1, 4))
def test_with_shared_noise_the_ring_leaks_what_remark_1_comes_to(n: int, laps: int) -> None:
    found = node_leaks(quiet(ring(n, laps, "share = true\n")))
    for user in range(n):
        for observer in set(range(n)) - {user}:
            if user < observer:
                expected = laps - 1 + 1 / (1 + (observer - 1) / (n - 1))
            else:
                expected = laps - 1 + 1 / (1 + (n - 1 - observer) / (n - 1))
            assert found[user, observer] == pytest.approx(expected, rel=1e-9), (user, observer)


@pytest.mark.parametrize("n", range(2, 8))
@pytest.mark.parametrize("laps", range(1, 5))
def test_without_a_closing_draw_exactly_the_named_pairs_leak_all(n: int, laps: int) -> None:
    found = node_leaks(quiet(ring(n, laps, "closing = false\n")))
    spacing = max(1, n - 1)
    for user in range(n):
        for observer in set(range(n)) - {user}:
            last = range((laps - 1) * n + observer + 1, laps * n)
            bare = user > observer and not any(hop % spacing == 0 for hop in last)
            assert math.isinf(found[user, observer]) == bare
    if (laps - 1) % (n - 1) == 0:
        assert not np.isinf(found).any()


def test_without_a_closing_draw_user_3_reads_user_4() -> None:
    found = node_leaks(quiet(ring(5, 2, "closing = false\n")))
    assert np.argwhere(np.isinf(found)).tolist() == [[4, 3]]


@pytest.mark.parametrize("tokens", [2, 3, 4])
def test_several_tokens_on_a_ring_publish_one_sum(tokens: int) -> None:
    """Own derivation: before its last visit a token's gaps count each for themselves, all last gaps as one row."""
    n, laps = 5, 2
    run = quiet(ring(n, laps, tokens=tokens))
    found = node_leaks(run)
    for user in range(n):
        for observer in set(range(n)) - {user}:
            total, last_weight, last_variance = 0.0, 0, 0
            for token in range(tokens):
                weight = variance = 0
                for hop in range(laps * n):
                    holder = (token * n // tokens + hop) % n
                    if holder == observer:  # sees the token, then adds what it knows
                        total += weight**2 / variance if weight else 0.0
                        weight = variance = 0
                        continue
                    weight += holder == user
                    variance += (hop % (n - 1) == 0) + (hop == laps * n - 1)
                last_weight, last_variance = last_weight + weight, last_variance + variance
            total += last_weight**2 / last_variance if last_weight else 0.0
            assert found[user, observer] == pytest.approx(total, rel=1e-9), (user, observer)


def test_alone_on_a_ring_only_curator_and_outsiders_observe() -> None:
    audit = quiet(ring(1, 3)).audit()
    assert [(claim.observer, claim.method) for claim in audit.claims] == [
        ("curator", "exact"),
        ("public", "exact"),
        ("network", "exact"),
        ("network", "local"),
    ]


# Random walks, from the path alone.


def paths(run: Run) -> dict[int, list[int]]:
    """Who held which token at each step, from public parts of records."""
    held: dict[int, dict[int, int]] = {}
    for peer, contents in run.contents().items():
        for record in contents.records:
            if record.kind in (RECEIVED, OWN) and public_message(record).type == TOKEN:
                item, step = public_message(record).fields
                assert step not in held.setdefault(item, {})
                held[item][step] = peer
    return {item: [steps[step] for step in sorted(steps)] for item, steps in held.items()}


def gap_leaks(tokens: dict[int, list[int]], n: int, observer: int) -> Any:
    """Sum of c^2/M over the gaps between visits; of the last gaps only the sum is seen."""
    found, last, last_steps = np.zeros(n), np.zeros(n), 0
    for path in tokens.values():
        counts, steps = np.zeros(n), 0
        for holder in path:
            if holder == observer:
                found += counts**2 / max(1, steps)
                counts, steps = np.zeros(n), 0
            else:
                counts[holder] += 1
                steps += 1
        last, last_steps = last + counts, last_steps + steps
    found += last**2 / max(1, last_steps)
    found[observer] = math.nan
    return found


@pytest.mark.parametrize(("n", "hops"), [(1, 4), (2, 1), (2, 9), (3, 20), (5, 40), (9, 30), (20, 200)])
@pytest.mark.parametrize("seed", [1, 2])
def test_gaps_of_the_complete_graph_count_each_for_itself(n: int, hops: int, seed: int) -> None:
    run = quiet(walk(n, hops, seed=seed))
    found, tokens = node_leaks(run), paths(run)
    assert [len(path) for path in tokens.values()] == [hops]
    for observer in range(n):
        np.testing.assert_allclose(found[:, observer], gap_leaks(tokens, n, observer), rtol=1e-9)
    counts = np.bincount(tokens[0], minlength=n)
    assert role_leak(run, "public") == pytest.approx(max(counts) ** 2 / hops, rel=1e-9)


@pytest.mark.parametrize("graph", ["ring", "star", "path", "erdos_renyi"])
def test_any_connected_graph_counts_its_gaps(graph: str) -> None:
    run = quiet(walk(6, 40, graph, seed=3))
    for observer in range(6):
        np.testing.assert_allclose(node_leaks(run)[:, observer], gap_leaks(paths(run), 6, observer), rtol=1e-9)


@pytest.mark.parametrize("tokens", [2, 5])
def test_the_last_gaps_of_several_tokens_are_one_observation(tokens: int) -> None:
    run = quiet(walk(6, 25, tokens=tokens))
    for observer in range(6):
        np.testing.assert_allclose(node_leaks(run)[:, observer], gap_leaks(paths(run), 6, observer), rtol=1e-9)
    counts = np.bincount([holder for path in paths(run).values() for holder in path], minlength=6)
    assert role_leak(run, "public") == pytest.approx(max(counts) ** 2 / (25 * tokens), rel=1e-9)


def test_the_curator_sees_every_token_s_total() -> None:
    run = quiet(walk(6, 25, tokens=3))
    each = sum(np.bincount(path, minlength=6) ** 2 / len(path) for path in paths(run).values())
    assert role_leak(run, "curator") == pytest.approx(max(each), rel=1e-9)


def csv_data(folder: Path, rows: int, columns: int) -> str:
    names = ["a", "b", "c"][:columns]
    lines = [",".join(names), *(",".join(["0.25"] * columns) for _ in range(rows))]
    (folder / "rows.csv").write_text("\n".join(lines) + "\n")
    return f'[data]\nkind = "csv"\npath = "{folder / "rows.csv"}"\nclip = [0.0, 1.0]\n'


def test_several_values_of_a_user_leak_as_if_all_were_replaced_together(tmp_path: Path) -> None:
    run = run_of(walk(4, 30, data=csv_data(tmp_path, 11, 1)))
    assert set(run.transcript().values.values()) == {2, 3}
    for observer in range(4):
        np.testing.assert_allclose(node_leaks(run)[:, observer], gap_leaks(paths(run), 4, observer), rtol=1e-9)


def test_vectors_leak_by_their_euclidean_sensitivity(tmp_path: Path) -> None:
    scalar = quiet(ring(4, 2)).audit()
    vector = run_of(ring(4, 2, data=csv_data(tmp_path, 4, 3))).audit()
    assert scalar.mu is not None
    np.testing.assert_allclose(vector.mu, math.sqrt(3.0) * scalar.mu, rtol=1e-6)
    np.testing.assert_allclose(vector.leak, scalar.leak, rtol=1e-9)


# Against brute force.


def assert_as_by_brute_force(run: Run, transcript: Transcript) -> None:
    n = run.plan.n
    auditor = ExactAuditor(transcript, n)
    groups = [(user,) for user in transcript.received]
    groups += [pair for pair in combinations(transcript.received, 2) if n > len(pair)]
    for members in groups:
        expected = leaks(transcript, n, seen_by(transcript, "node", members), members)
        np.testing.assert_allclose(auditor.nodes(members).values, expected, rtol=1e-9, atol=1e-12, err_msg=str(members))
    for name, found in (
        ("curator", auditor.curator()),
        ("public", auditor.public()),
        ("network", auditor.network()),
    ):
        expected = leaks(transcript, n, seen_by(transcript, name))
        np.testing.assert_allclose(found.values, expected, rtol=1e-9, atol=1e-12, err_msg=name)


QUIET = [
    ring(2, 3),
    ring(5, 2),
    ring(4, 3, tokens=3),
    ring(5, 2, "closing = false\n"),
    ring(4, 2, "share = true\n", tokens=2),
    walk(4, 25, tokens=2),
    walk(5, 30, "star"),
    walk(3, 12, noise='[noise]\nmechanism = "none"\n'),
]


@pytest.mark.parametrize("text", QUIET)
def test_every_pair_is_as_by_brute_force(text: str) -> None:
    run = quiet(text)
    assert_as_by_brute_force(run, run.transcript())


@pytest.mark.parametrize("text", QUIET)
def test_the_general_way_agrees_with_that_for_disjoint_rows(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = quiet(text)
    transcript = run.transcript()
    fast = [ExactAuditor(transcript, run.plan.n).nodes([user]).values for user in range(run.plan.n)]
    calls = []

    def general(*arguments: Any) -> Any:
        calls.append(1)
        return gaussian_view.general_leaks(*arguments)

    monkeypatch.setattr(exact, "general_leaks", general)
    auditor = ExactAuditor(transcript, run.plan.n)
    auditor._draws_once = False
    np.testing.assert_allclose([auditor.nodes([user]).values for user in range(run.plan.n)], fast, rtol=1e-9)
    assert len(calls) == run.plan.n


@settings(max_examples=40)
@given(
    n=st.integers(3, 6),
    hops=st.integers(5, 30),
    tokens=st.integers(1, 3),
    gone=st.lists(
        st.tuples(st.integers(0, 5), st.integers(5, 40)), min_size=1, max_size=2, unique_by=lambda one: one[0]
    ),
    graph=st.sampled_from(["complete", "complete", "ring"]),
    seed=st.integers(0, 50),
)
def test_what_goes_round_the_gone_is_as_by_brute_force(
    n: int, hops: int, tokens: int, gone: list[tuple[int, int]], graph: str, seed: int
) -> None:
    crashes = [Crash(peer=user % n, at_record=record, down_s=None) for user, record in gone]
    crashes = crashes[: max(1, n - 3)]
    run = run_of(walk(n, hops, graph, tokens=tokens, seed=seed), *crashes)
    transcript = run.transcript()
    if not transcript.unknown:
        assert_as_by_brute_force(run, transcript)


def test_a_token_sent_to_the_gone_and_again_elsewhere_leaves_its_rows() -> None:
    """At least one of these runs sends the same noised value to two users."""
    shared = 0
    for seed in range(12):
        run = run_of(walk(4, 20, seed=seed), Crash(peer=2, at_record=9, down_s=None))
        transcript = run.transcript()
        places = [id(form) for forms in transcript.received.values() for form in forms]
        shared += len(set(places)) < len(places)
        assert_as_by_brute_force(run, transcript)
    assert shared


def test_what_was_sent_to_a_user_that_recorded_nothing_of_it_is_in_its_view() -> None:
    """It comes back, learns that it is out and closes; meanwhile a token was on its way to it."""
    seen = 0
    for record in range(6, 16):
        run = run_of(walk(3, 30, seed=record), Crash(peer=1, at_record=record, down_s=30.0))
        transcript = run.transcript()
        contents = run.contents()
        tokens = [one for one in contents[1].records if one.kind == RECEIVED and public_message(one).type == TOKEN]
        recorded, sent = len(tokens), len(transcript.received[1])
        assert sent >= recorded
        seen += sent > recorded
        assert_as_by_brute_force(run, transcript)
    assert seen


# Coalitions.


def test_a_coalition_with_no_honest_draw_between_its_members_reads_all() -> None:
    """Draws of six users are at hops 0 and 5 of the first lap; members 1 and 3 hold user 2 between them."""
    run = quiet(ring(6, 1))
    coalition = run.audit(colluders=(1, 3)).leak_coalition
    assert coalition is not None
    assert math.isinf(coalition[2])
    assert np.isfinite(coalition[[0, 4, 5]]).all()
    assert np.isnan(coalition[[1, 3]]).all()


@pytest.mark.parametrize("members", [(0, 2), (4, 1), (0, 1, 2, 3), (3,)])
def test_coalitions_pool_their_rows(members: tuple[int, ...]) -> None:
    run = quiet(walk(5, 40))
    as_one = [members[0] if holder in members else holder for holder in paths(run)[0]]
    expected = gap_leaks({0: as_one}, 5, members[0])
    expected[list(members)] = math.nan
    np.testing.assert_allclose(run.audit(colluders=members).leak_coalition, expected, rtol=1e-9)


def test_pooling_never_lowers_a_leak() -> None:
    audit = quiet(walk(5, 40)).audit(colluders=(1, 3))
    assert audit.leak is not None
    assert audit.leak_coalition is not None
    for user in (0, 2, 4):
        assert audit.leak_coalition[user] >= max(audit.leak[user, 1], audit.leak[user, 3]) - 1e-12


# Where something cannot be told.


def test_a_view_that_holds_an_unknown_message_tells_nothing() -> None:
    unknown = LinearForm.of(Source("unknown", 1, 0))
    transcript = Transcript(received={0: [unknown], 2: [ZERO_FORM]}, published=(ZERO_FORM,))
    auditor = ExactAuditor(transcript, 3)
    assert auditor.nodes([0]).values is None
    assert auditor.nodes([0, 2]).values is None
    assert auditor.network().values is None
    assert auditor.nodes([2]).values is not None


def test_what_was_published_belongs_to_every_view() -> None:
    """Without it, an observer would seem to know less than it does."""
    own = LinearForm.of(Source("input", 1, 0))
    assert ExactAuditor(Transcript(received={0: [own]}), 2).nodes([0]).values is None
    assert ExactAuditor(Transcript(received={0: [own]}), 2).curator().values is None
    found = ExactAuditor(Transcript(received={0: []}, published=(own,)), 2).nodes([0]).values
    assert found is not None
    assert math.isinf(found[1])


def test_the_curator_s_rows_are_all_totals_it_received() -> None:
    contents = quiet(walk(4, 12, tokens=3)).contents()[CURATOR]
    received = sum(one.kind == RECEIVED and public_message(one).type == TOTAL for one in contents.records)
    assert len(quiet(walk(4, 12, tokens=3)).transcript().totals) == received == 3


def test_a_large_run_on_the_complete_graph_is_audited() -> None:
    run = quiet(walk(60, 6000))
    found, tokens = node_leaks(run), paths(run)
    for observer in (0, 31, 59):
        np.testing.assert_allclose(found[:, observer], gap_leaks(tokens, 60, observer), rtol=1e-9)


def test_a_total_that_was_sent_and_never_recorded_counts_as_seen_by_curator_and_network() -> None:
    """Who was put out may have been heard: the curator may hold both totals, of which it published one."""
    run = run_of(walk(4, 6), Crash(peer=0, at_record=17, down_s=None))
    transcript = run.transcript()
    assert transcript.undelivered
    auditor = ExactAuditor(transcript, 4)
    curator, public = auditor.curator().values, auditor.public().values
    assert curator is not None
    assert public is not None
    np.testing.assert_allclose(curator, leaks(transcript, 4, seen_by(transcript, "curator")), rtol=1e-9)
    assert curator.max() > public.max() * 1.05


class Fixed:
    """User 0 leaks 4 times what others leak, to everybody; nothing is published."""

    def nodes(self, members: object) -> Leaks:
        return Leaks(np.array([4.0, 1.0, 1.0]) * 1e-20)

    def curator(self, members: object = ()) -> Leaks:
        return Leaks(None)

    def public(self) -> Leaks:
        return Leaks(np.zeros(3))

    def network(self) -> Leaks:
        return Leaks(np.array([9.0, 1.0, 1.0]) * 1e-20)


def context(colluders: tuple[int, ...] = (), incomplete: tuple[int, ...] = ()) -> AuditContext:
    run = quiet(learning(3, 9))
    return AuditContext(run.plan, run.contents(), run.transcript(), incomplete, DELTA, colluders)


def test_the_worst_pair_and_the_mean_are_told() -> None:
    found = account_of_pairs(context((1,)), Fixed(), "exact", "an assumption")
    claims = {claim.observer: claim for claim in found.claims}
    assert set(claims) == {"node", "coalition", "public", "network"}
    assert claims["node"].worst_pair == (0, 0)
    assert claims["coalition"].worst_pair == (0, (1,))
    assert claims["node"].mu_max == pytest.approx(2 * claims["node"].mu_mean * 3 / 4)  # type: ignore[operator]
    assert claims["public"].epsilon_max == 0.0
    assert "an assumption" in claims["node"].assumptions
    assert [refusal.observer for refusal in found.refusals] == ["curator+coalition", "curator"]


def test_who_is_not_at_hand_is_refused_by_name() -> None:
    found = account_of_pairs(context((1,), (1,)), Fixed(), "exact")
    assert [refusal.observer for refusal in found.refusals] == [
        "node",
        "coalition",
        "curator+coalition",
        "curator",
        "network",
    ]
    assert found.refusals[0].reason.startswith("user 1:")
    assert found.mu is not None
    assert np.isnan(found.mu[:, 1]).all()


def test_mu_is_rounded_up() -> None:
    claims = PairClaims(context(), "exact")
    leaks = np.array([1e-18])
    assert claims.mu(leaks)[0] >= context().sensitivity * 1e-9


def test_rounding_adds_up_to_each_users_ceiling() -> None:
    """User 0 is at its ceiling, user 1 comes to it, user 2 is far below; of whom nothing is told, nothing is added."""
    claims = PairClaims(context(), "exact", rounding=0.5, ceilings=np.array([1.0, 1.2, 9.0]))
    mu = np.array([[1.0, 0.0], [1.0, np.nan], [1.0, 0.25]])
    claim = claims.claim("node", mu, [0, 1])
    assert claim.worst_pair == (2, 0)
    assert claim.mu_max == pytest.approx(1.5)
    assert claim.mu_mean == pytest.approx((1.0 + 0.0 + 1.2 + 1.5 + 0.75) / 5)


def account(run: Run, *, incomplete: tuple[int, ...] = (), colluders: tuple[int, ...] = ()) -> AccountResult:
    return exact_account(AuditContext(run.plan, run.contents(), run.transcript(), incomplete, DELTA, colluders))


def test_one_claim_an_observer_and_a_column_a_user() -> None:
    found = account(quiet(ring(4, 2)), colluders=(0, 2))
    assert [claim.observer for claim in found.claims] == [
        "node",
        "coalition",
        "curator+coalition",
        "curator",
        "public",
        "network",
    ]
    assert found.mu is not None
    assert found.mu_coalition is not None
    assert np.array_equal(np.isnan(found.mu), np.eye(4, dtype=bool))
    assert np.array_equal(np.isnan(found.mu_coalition), [True, False, True, False])
    assert not found.refusals


def test_a_node_that_is_not_at_hand_is_refused_by_name_and_the_network_too() -> None:
    found = account(quiet(ring(4, 2)), incomplete=(3,), colluders=(1, 3))
    assert {(one.observer, one.method) for one in found.refusals} == {
        ("node", Method.EXACT), ("coalition", Method.EXACT), ("curator+coalition", Method.EXACT),
        ("network", Method.EXACT),
    }  # fmt: skip
    assert found.mu is not None
    assert np.all(np.isnan(found.mu[:, 3]))


def test_noise_that_is_not_gaussian_has_no_exact_leak() -> None:
    found = account(quiet(walk(4, 8, **HISTOGRAM)))
    assert not found.claims
    assert found.mu is None
    assert all("randomized_response" in one.reason for one in found.refusals)


# A protocol that the package does not know.


@dataclass(frozen=True)
class ChainPlan(PlanDefaults):
    """What the contract asks for, and nothing of our own plans."""

    n: int
    noise: Mechanism
    grid_exponent: int
    mechanisms: tuple[Mechanism, ...]
    starts: tuple[Any, ...] = ()
    unit: float = 1.0
    length: int = 1

    def exchanges(self, edges: int) -> int:
        return self.n


class ChainMachine:
    """Sends its value with noise to the next user, once more with noise of another scale, and what came half in."""

    finished = False

    def __init__(self, plan: ChainPlan, user: int, inputs: Any) -> None:
        self._plan, self._user, self._inputs = plan, user, inputs

    def start(self, now_s: float, draws: Any) -> Step:
        if self._user:
            return NOTHING
        return self._on(None, draws)

    def receive(self, sender: int, message: Message, now_s: float, draws: Any) -> Step:
        return self._on(message.value, draws) if sender == self._user - 1 and message.fields == (1,) else NOTHING

    def _on(self, came: Any, draws: Any) -> Step:
        plan, weak = self._plan, self._plan.mechanisms[1]
        value = self._inputs.contribution(0)
        first = value + draws.noise(plan.noise, ()) + (0 if came is None else came * 3)
        again = value * 2 + draws.noise(weak, ())
        if self._user == plan.n - 1:
            return Step((Send(CURATOR, Message("finished", (), first)),))
        to = self._user + 1
        done = Send(CURATOR, Message("finished", ()))
        return Step((Send(to, Message("exchange", (2,), again)), Send(to, Message("exchange", (1,), first)), done))

    def wake(self, now_s: float, draws: Any) -> Step:
        return NOTHING

    def excluded(self, peer: int, now_s: float, draws: Any) -> Step:
        return NOTHING


class Chain(ProtocolDefaults):
    """Plans and inputs of a walk, with another machine."""

    name = "walk.sum"
    messages = COMMON.plus(
        MessageType(name="exchange", routes="user -> user", meaning="a noised value", fields=Rounds, value=Value.ALWAYS)
    )

    def plan(self, spec: Any, n: int, dimensions: int, facts: Any = NO_FACTS) -> Any:
        plan = protocol("walk.sum").plan(spec, n, dimensions, facts)
        faint = plan.noise._replace(scale=plan.noise.scale / 4)
        return ChainPlan(n, plan.noise, plan.grid_exponent, (plan.noise, faint))

    def machine(self, plan: ChainPlan, user: int, neighbours: Any, inputs: Any) -> ChainMachine:
        return ChainMachine(plan, user, inputs)

    def inputs(self, plan: Any, rows: Any) -> Any:
        numbers = [int(value) for value in Grid(plan.grid_exponent).to_grid(rows.rows).reshape(-1)]
        return NumberInputs(numbers, 1), numbers

    def inputs_again(self, plan: Any, values: list[Any]) -> Any:
        return NumberInputs(values, 1)

    def check(self, plan: Any, message: Message) -> str | None:
        return None

    def publish(self, plan: Any, totals: Any) -> Any:
        return sum(totals[1:], totals[0]) if totals else None


def test_a_protocol_that_nobody_knows_gets_exact_claims_and_the_ceiling() -> None:
    def chain(run: RunPlan) -> RunPlan:
        return replace(run, protocol=Chain(), plan=Chain().plan(run.spec, 4, 1))

    run = run_of(walk(4, 8), changed=chain)
    plan = chain(run.plan)
    audit = audit_run(plan, Recorded(plan, run.contents()), [], DELTA, (0, 1))
    claims = {(claim.observer, claim.method): claim for claim in audit.claims}
    assert claims.keys() == {
        *(
            (observer, Method.EXACT)
            for observer in ("node", "coalition", "curator+coalition", "curator", "public", "network")
        ),
        ("network", "local"),
    }
    sigma, value = plan.plan.noise.scale, AuditContext(plan, {}, Transcript(), (), DELTA, ()).sensitivity
    both = 1 / sigma**2 + 4 / (sigma / 4) ** 2
    assert audit.mu is not None
    assert audit.mu[0, 1] == pytest.approx(value * math.sqrt(both), rel=1e-9), "both values of user 0, each noised"
    assert claims["network", "local"].mu_max == pytest.approx(value * math.sqrt(both), rel=1e-9)
    # The published sum is the last user's: user 0 stands in it with 27, the others with 9, 3 and 1, all with noise.
    most = 27 / math.sqrt(27**2 + 9**2 + 3**2 + 1)
    for observer in ("curator", "public"):
        assert claims[observer, Method.EXACT].mu_max == pytest.approx(value * most / sigma, rel=1e-9)
