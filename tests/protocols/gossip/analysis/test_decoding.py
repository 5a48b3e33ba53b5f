"""What a user of gossip reads out of its own view: all that the accountant calls told, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import p2pdp
from p2pdp.attacks.decoding import readings_of
from p2pdp.core.errors import Refused
from p2pdp.core.spec import GraphPart
from p2pdp.protocols.gossip.analysis.decoding import decoded, first_sent, graph_of, met_alone, states_heard
from p2pdp.protocols.gossip.analysis.views import GossipViews
from p2pdp.runs.attack import attack
from tests.support.gossip_learners import gossip_learning
from tests.support.gossips import context_of, gossip
from tests.support.learners import prepared
from tests.support.runs import Run, quiet, ring


def errors_in_sigma(run: Run, observer: int) -> dict[int, float]:
    """How far off each value that was read is from what its user sent first."""
    plan, views = run.plan.plan, run.contents()
    return {
        reading.users[0]: float(reading.total - first_sent(views[reading.users[0]]) / plan.step) / plan.noise.scale
        for reading in readings_of(run.plan, observer, views[observer])
    }


def singles(n: int) -> list[tuple[int, ...]]:
    return [(user,) for user in range(n)]


@pytest.mark.parametrize("terms", ["rounds = 8", "rounds = 10\naccelerated = true"])
def test_the_opposite_node_of_a_ring_is_read_as_far_as_dithers_let_it(terms: str) -> None:
    errors = errors_in_sigma(quiet(gossip(16, "ring", terms)), 0)
    assert set(errors) == set(range(1, 16))
    assert 1e-9 < abs(errors[8]) < 1e-2, "its share in a message is 3^-7 of the dither's noise"
    assert max(abs(error) for error in (errors[1], errors[15])) < 1e-6


@pytest.mark.parametrize(
    "text",
    [
        gossip(12, "ring", "rounds = 4"),
        gossip(16, "hypercube", "rounds = 6"),
        gossip(16, "hypercube", "rounds = 6\naccelerated = true"),
        gossip(6, "path", "rounds = 3"),
        gossip(5, "complete", "rounds = 2"),
        gossip(9, "star", "rounds = 1"),
        gossip(12, "erdos_renyi", "rounds = 3"),
    ],
)
def test_whoever_leaks_wholly_is_read_and_nobody_else(text: str) -> None:
    run = quiet(text)
    views = GossipViews(context_of(run))
    for observer in range(0, run.plan.n, 3):
        view = views.view([observer])
        assert view is not None
        leaks = views.spans([view]).spans[0].leaks
        told = {user for user in range(run.plan.n) if leaks[user] > 1 - 1e-8 and user != observer}
        errors = errors_in_sigma(run, observer)
        assert set(errors) == told
        assert all(abs(error) < 1e-4 for error in errors.values())


def test_noise_on_messages_keeps_the_opposite_node_from_being_read() -> None:
    """The decoder reads neighbours only; forced, it comes out farther off than any guess."""
    run = quiet(gossip(16, "ring", "rounds = 8\nmessage_sigma = 0.1"))
    views, plan = run.contents(), run.plan.plan
    assert [reading.users for reading in readings_of(run.plan, 0, views[0])] == [(1,), (15,)]
    read = decoded(graph_of(run.plan), plan, 0, first_sent(views[0]), states_heard(views[0]), singles(16))
    assert abs(read[8,] - first_sent(views[8])) / (plan.noise.scale * plan.step) > 3.0


def test_vectors_are_read_coordinate_by_coordinate() -> None:
    run = quiet(gossip(6, "ring", "rounds = 3"))
    heard = states_heard(run.contents()[0])
    double = {key: np.array([value, 2.0 * value]) for key, value in heard.items()}
    own = first_sent(run.contents()[0])
    read = decoded(graph_of(run.plan), run.plan.plan, 0, np.array([own, 2.0 * own]), double, singles(6))
    for (user,), value in read.items():
        assert value[1] == pytest.approx(2.0 * value[0])
        assert value[0] == pytest.approx(first_sent(run.contents()[user]))


def test_rounds_of_which_something_is_missing_are_not_used() -> None:
    run = quiet(gossip(12, "ring", "rounds = 4"))
    heard = states_heard(run.contents()[0])
    del heard[3, 1]
    read = decoded(graph_of(run.plan), run.plan.plan, 0, first_sent(run.contents()[0]), heard, singles(12))
    assert sorted(read) == [(1,), (2,), (10,), (11,)]


def test_who_hears_nobody_reads_nobody() -> None:
    run = quiet(gossip(1, "complete", "rounds = 2"))
    assert readings_of(run.plan, 0, run.contents()[0]) == []


def pairs(n: int, kind: str, activations: int) -> Run:
    return quiet(gossip(n, kind, f"activations = {activations}", protocol="randomized"))


def met_before(run: Run) -> dict[tuple[int, int], bool]:
    """For each exchange, by receiver and number, whether its sender had met anybody before: by the senders' ledgers."""
    found = {}
    for peer, contents in run.contents().items():
        if peer >= 0:
            for place, number in enumerate(sorted(number for number, _ in states_heard(contents))):
                found[peer, number] = place > 0
    return found


@pytest.mark.parametrize(("n", "kind"), [(6, "star"), (5, "path"), (6, "ring"), (4, "complete"), (2, "path")])
def test_of_pairs_only_first_values_are_read_and_they_are_right(n: int, kind: str) -> None:
    """Whoever is read had met nobody else; the middle of a star reads all, the ends of a path at their neighbours."""
    run = pairs(n, kind, 25)
    before = met_before(run)
    for observer in range(n):
        errors = errors_in_sigma(run, observer)
        assert all(abs(error) < 1e-6 for error in errors.values())
        heard: dict[int, int] = {}
        for number, peer in sorted(states_heard(run.contents()[observer])):
            heard.setdefault(peer, number)
        told = {peer for peer, number in heard.items() if not before[peer, number]}
        assert set(errors) <= told
        if (kind, observer) in (("star", 0), ("path", 1)):
            assert 0 in errors or kind == "star"
            assert kind == "path" or set(errors) == set(range(1, n))
    first = min(number for (_, number), met in before.items() if not met)
    assert first == 1
    assert sum(len(errors_in_sigma(run, observer)) for observer in range(n)) >= 2


def test_of_a_changing_graph_only_the_first_round_is_read() -> None:
    run = quiet(gossip(9, "erdos_renyi", "rounds = 6", extra="changing = true\nprobability = 0.4"))
    for observer in range(9):
        heard = states_heard(run.contents()[observer])
        errors = errors_in_sigma(run, observer)
        assert set(errors) == {peer for number, peer in heard if number == 1}
        assert all(abs(error) < 1e-6 for error in errors.values())


def test_a_graph_from_a_file_has_to_be_at_hand() -> None:
    run = quiet(gossip(12, "ring", "rounds = 4"))
    spec = replace(run.plan.spec, graph=GraphPart("file", path="gone.csv"))
    with pytest.raises(Refused, match="not where the spec says"):
        readings_of(replace(run.plan, spec=spec, graph=None), 0, run.contents()[0])
    at_hand = replace(run.plan, spec=spec, graph=graph_of(run.plan))
    assert len(readings_of(at_hand, 0, run.contents()[0])) == 8


def test_pairs_on_a_graph_that_is_not_at_hand_are_read_by_their_numbers_only() -> None:
    run = pairs(6, "star", 25)
    spec = replace(run.plan.spec, graph=GraphPart("file", path="gone.csv"))
    assert set(met_alone(run.plan, run.contents()[0])) == set(range(1, 6))
    assert set(met_alone(replace(run.plan, spec=spec, graph=None), run.contents()[0])) == set(range(1, 6))
    path = pairs(5, "path", 25)
    unknown = replace(path.plan, spec=spec, graph=None)
    assert set(met_alone(unknown, path.contents()[1])) <= set(met_alone(path.plan, path.contents()[1]))


def test_who_sent_nothing_has_no_first_value() -> None:
    assert first_sent(quiet(ring(4, 1)).contents()[0]) is None


def test_of_learners_the_first_gradients_of_those_met_first_are_read(tmp_path: Path) -> None:
    """As far off as their own noise, and not more; those who are met later are not read."""
    result = p2pdp.simulate(prepared(gossip_learning(4, "path", "rounds = 2"))[0].spec, tmp_path / "run")
    found = attack(str(result.folder), 1).targets
    assert [target["user"] for target in found] == [0, 2]
    for target in found:
        assert np.abs(target["noised_value_error_in_sigma"]).max() < 1e-6
        assert np.abs(target["error"]).max() < 0.8 * 6


SHARED = 'mechanism = "gaussian"\nsigma = 2.0\npair_sigma = 20.0'


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (gossip(6, "ring", "rounds = 6", noise=SHARED), {0: [(1, 2, 3, 4, 5)], 3: [(0, 1, 2, 4, 5)]}),
        (gossip(5, "star", "rounds = 2", noise=SHARED), {0: [(1,), (2,), (3,), (4,)], 1: [(0, 2, 3, 4)]}),
        (gossip(5, "path", "rounds = 5", noise=SHARED), {0: [(1, 2, 3, 4)], 1: [(0,), (2, 3, 4)], 2: [(0, 1), (3, 4)]}),
        (gossip(5, "complete", "rounds = 1\nmessage_sigma = 0.001", noise=SHARED), {2: [(0, 1, 3, 4)]}),
        (gossip(4, "path", "activations = 6", noise=SHARED, protocol="randomized"), {1: [(0,)]}),
    ],
)
def test_noise_of_pairs_leaves_sums_of_those_who_share_it(text: str, read: dict[int, list[tuple[int, ...]]]) -> None:
    """Whoever hides behind the observer alone is read, since that knows the draws of which it holds an end."""
    run = quiet(text)
    plan, views, private = run.plan.plan, run.contents(), run.evidence.private
    for observer, groups in read.items():
        found = readings_of(run.plan, observer, views[observer])
        assert [reading.users for reading in found] == groups
        for reading in found:
            truths = [_noised(run, user, private[user]) for user in reading.users]
            assert abs(reading.total - sum(truths)) / plan.noise.scale < 1e-2 * len(truths)


def _noised(run: Run, user: int, private: bytes) -> float:
    values = run.evidence.inputs(user)
    assert values is not None
    inputs = run.plan.protocol.inputs_again(run.plan.plan, values)
    truths = run.plan.protocol.analysis().truths(run.plan, user, inputs, run.contents()[user], private)
    return float(truths[0, user][1])


def test_noise_of_pairs_keeps_gradients_from_being_read_but_for_whoever_hears_all_who_share_it() -> None:
    text = gossip_learning(5, "star", "rounds = 2").replace("sigma = 0.8", "sigma = 0.8\npair_sigma = 8.0")
    run = quiet(text)
    plan, views = run.plan.plan, run.contents()
    found = readings_of(run.plan, 0, views[0])
    assert [reading.users for reading in found] == [(1,), (2,), (3,), (4,)]
    for reading in found:
        sent = first_sent(views[reading.users[0]]) / -plan.rate_at(1) / plan.step
        masked = np.abs(sent - reading.total).max() / plan.noise.scale
        assert masked > 0.1, "the draws with the observer were taken out"
        inputs = run.plan.protocol.inputs_again(plan, run.evidence.inputs(reading.users[0]))
        gradient = inputs.gradient(inputs.zero(), 0) / plan.step  # type: ignore[attr-defined]
        assert np.abs(reading.total - gradient).max() / plan.noise.scale < 6.0
    assert readings_of(run.plan, 1, views[1]) == []
