"""Whatever a party receives is a function of what its claims take to be given, and of fresh randomness.

Small runs are enumerated: all that chance may decide there, or all of some part of it. Of the outcomes that agree with
what is given to an observer, everything that it received must have the same law: frames, their control content,
numbers and times. Where frames are lost or somebody restarts, the times at which tokens come are taken to be given too:
that latencies tell nothing is an assumption of the claims. Values are left out, and whatever is received besides must
not depend on anybody's data: that is compared for every protocol there is.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import cache
from itertools import combinations, pairwise, permutations
from random import Random
from typing import Any, Final
from unittest.mock import patch

import pytest

from p2pdp.auditor.audit import audit_run
from p2pdp.core import messages
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.step import Message, Send, Step
from p2pdp.crypto.identity import RunKey
from p2pdp.files.spec import load_spec, spec_to_toml
from p2pdp.ledger.records import read
from p2pdp.peer.payloads import CONTROL, POKE
from p2pdp.peer.peers import Peers
from p2pdp.protocols import names
from p2pdp.protocols.participant import Participant
from p2pdp.protocols.shuffle.shuffling import Shuffle
from p2pdp.replay.evidence import Recorded
from p2pdp.sim.faults import Crash, Faults, Partition
from tests.support.fault_worlds import walk
from tests.support.gossip_specs import gossip
from tests.support.learners import learning
from tests.support.seen import CALM, ROLES, Aspect, Observer, Run, leaks, outcomes, own_visits, remembered_crypto
from tests.support.shuffle_specs import shuffle
from tests.support.sources import TOP


@pytest.fixture(autouse=True)
def _quick() -> Iterator[None]:
    with remembered_crypto():
        yield


def users(run: Run) -> Iterable[Observer]:
    return [(user,) for user in range(run.n)]


def roles(_run: Run) -> Iterable[Observer]:
    return [ROLES]


def nothing_leaks(runs: Iterable[Run], *aspects: Aspect, compared: int = 1) -> None:
    """With at least so many comparisons, so that the law says something."""
    found, count = leaks(runs, aspects)
    assert found == []
    assert count >= compared


def leaking(runs: Iterable[Run], *aspects: Aspect) -> set[str]:
    """The aspects that show."""
    return {leak.aspect for leak in leaks(runs, aspects)[0]}


# Walks


def whole_path(run: Run) -> Hashable:
    return tuple(map(tuple, run.paths))


def publishers(run: Run, _observer: Observer) -> Hashable:
    """Who had each token last, and how often it moved."""
    return tuple((path[-1], sum(one != two for one, two in pairwise(path))) for path in run.paths)


def with_times(given: Callable[[Run, Observer], Hashable]) -> Callable[[Run, Observer], Hashable]:
    return lambda run, observer: (given(run, observer), run.times(observer))


PATHS: Final = Aspect("paths", users, whole_path, own_visits)
PATHS_OF_ROLES: Final = Aspect("paths, from the roles", roles, whole_path, publishers)
WALKS: Final = (PATHS, PATHS_OF_ROLES)
DISTURBED_WALKS: Final = (
    Aspect("paths", users, whole_path, with_times(own_visits)),
    Aspect("paths, from the roles", roles, whole_path, with_times(publishers)),
)


@pytest.mark.parametrize(
    ("text", "compared"),
    [(walk(4, 5), 700), (walk(3, 2, tokens=2), 70), (walk(4, 7, "path"), 20), (learning(3, 4), 20)],
    ids=["complete", "two tokens", "path", "learning"],
)
def test_no_view_tells_where_tokens_went_meanwhile(text: str, compared: int) -> None:
    nothing_leaks(outcomes(text), *WALKS, compared=compared)


DISTURBED: Final = {
    "a user restarts": Faults(jitter_s=0.0, crashes=(Crash(1, at_s=0.0085, down_s=0.3),)),
    "another restarts later": Faults(jitter_s=0.0, crashes=(Crash(3, at_s=0.0095, down_s=4.0),)),
    "a user is cut off": Faults(jitter_s=0.0, partitions=(Partition(0.0075, 2.5, frozenset({2})),)),
    "all frames come twice": Faults(jitter_s=0.0, duplication=1.0),
    "the curator restarts": Faults(jitter_s=0.0, crashes=(Crash(CURATOR, at_s=0.009, down_s=2.0),)),
}


@pytest.mark.parametrize("faults", DISTURBED.values(), ids=DISTURBED)
def test_neither_restarts_nor_what_is_sent_again_tell_more(faults: Faults) -> None:
    nothing_leaks(outcomes(walk(4, 4), faults), *DISTURBED_WALKS, compared=40)


# The token begins when all have acknowledged that the run goes, and its total waits until ticks have passed.
TICKS: Final = Faults(
    jitter_s=0.0, partitions=(Partition(0.0055, 1.5, frozenset({0})), Partition(2.5, 5.5, frozenset({CURATOR})))
)
# User 3 knows users 2 and 1 beside its visit; whether user 1 had the token before too is hidden.
VISITED_BEFORE: Final = ([1, 2, 3, 1], [4, 2, 3, 1])


def test_an_acknowledgement_does_not_tell_when_others_came() -> None:
    runs = [Run(walk(5, 5), TICKS, script) for script in VISITED_BEFORE]
    assert any(run.frames[-1].at_s > 4.5 for run in runs)
    nothing_leaks(runs, Aspect("paths", lambda _run: [(3,)], whole_path, own_visits))


# Network shuffling


def routes(run: Run) -> Hashable:
    return run.routes


def handed_in(run: Run, _observer: Observer) -> Hashable:
    """Who handed in whose report."""
    return tuple(route[-1][1] for route in run.routes)


def loads(run: Run, _observer: Observer) -> Hashable:
    """Who handed in how many."""
    return tuple(sorted(route[-1][1] for route in run.routes))


SHUFFLED: Final = (
    Aspect("routes behind known reports", roles, routes, handed_in, owners=True),
    Aspect("routes behind loads", roles, routes, loads),
)


@pytest.mark.parametrize(
    ("text", "compared"),
    [
        (shuffle(3, terms="rounds = 2"), 50),
        (shuffle(3, terms="rounds = 1\nstay = 0.25"), 10),
        (shuffle(3, protocol="single", terms="rounds = 1\nstay = 0.5"), 15),
        (shuffle(3, terms="rounds = 1\nstay = 0.25\ncover = true"), 10),
    ],
    ids=["all", "staying", "single", "cover"],
)
def test_the_curator_learns_of_no_route_but_its_end(text: str, compared: int) -> None:
    nothing_leaks(outcomes(text), *SHUFFLED, compared=compared)


LATE: Final = {
    "a user restarts": Faults(jitter_s=0.0, crashes=(Crash(1, at_s=0.0065, down_s=0.3),)),
    "a user is late": Faults(jitter_s=0.0, partitions=(Partition(0.0065, 5.0, frozenset({2})),)),
}


@pytest.mark.parametrize("faults", LATE.values(), ids=LATE)
def test_nor_if_somebody_is_late(faults: Faults) -> None:
    nothing_leaks(outcomes(shuffle(3, terms="rounds = 1\nstay = 0.25"), faults), *SHUFFLED, compared=10)


# Skeletons


def with_auditor(text: str) -> str:
    return f'{text}\n[audit]\nkey = "{RunKey(bytes([7] * 32)).public.hex()}"\n'


def test_sealed_skeletons_tell_the_curator_nothing() -> None:
    nothing_leaks(outcomes(with_auditor(walk(3, 4)), skeletons=True), *WALKS, compared=20)
    text = with_auditor(shuffle(3, terms="rounds = 1\nstay = 0.25"))
    nothing_leaks(outcomes(text, skeletons=True), *SHUFFLED, compared=10)


def test_skeletons_that_are_open_tell_it_routes() -> None:
    """Their length alone does; claims about the curator are refused then."""
    assert leaking(outcomes(walk(3, 4), skeletons=True), *WALKS) == {"paths, from the roles"}


# Graphs that change in every round: a bound rests on nobody's knowing any edge but its own


def edges(run: Run) -> Hashable:
    return tuple(tuple(sorted(graph)) for graph in run.graphs)


def but_for_names(run: Run, observer: Observer) -> Hashable:
    """The graphs, where it cannot be told who is who among those whom the observer never met."""
    (me,) = observer
    met = {me, *(peer for graph in run.graphs for edge in graph if me in edge for peer in edge)}
    strangers = sorted(set(range(run.n)) - met)
    return min(
        tuple(tuple(sorted(_edge(names, edge) for edge in graph)) for graph in run.graphs)
        for order in permutations(strangers)
        for names in [dict(zip(strangers, order, strict=True))]
    )


CHANGING: Final = gossip(5, "erdos_renyi", "rounds = 3").replace("[gossip]", "changing = true\n[gossip]")
# Who is quicker than others depends on who has the lower number: that it tells nothing is an assumption of the claim.
EDGES: Final = Aspect("edges of others", users, edges, but_for_names, timed=False)
STRANGERS: Final = (2, 3, 4)  # whom user 0 never meets


def changing() -> Iterator[Run]:
    """Some graphs, each beside one in which strangers have other names."""
    chance = Random(5)  # noqa: S311 - nothing is kept secret with it
    others = list(combinations(range(1, 5), 2))
    for _ in range(8):
        drawn = [[(0, 1), *(edge for edge in others if chance.random() < 0.5)] for _ in range(3)]
        drawn[chance.randrange(3)].pop(0)
        names = dict(zip(STRANGERS, chance.sample(STRANGERS, 3), strict=True))
        yield Run(CHANGING, CALM, graphs=drawn)
        yield Run(CHANGING, CALM, graphs=[[_edge(names, edge) for edge in graph] for graph in drawn])


def _edge(names: dict[Peer, Peer], edge: tuple[Peer, Peer]) -> tuple[Peer, Peer]:
    one, other = (names.get(peer, peer) for peer in edge)
    return min(one, other), max(one, other)


def test_nobody_learns_who_met_whom_elsewhere() -> None:
    nothing_leaks(changing(), EDGES, compared=5)


# Everything else: whose data it is shows in no frame but for the values in it


def small(name: str) -> str:
    """A sample as a run of a few users."""
    path = TOP / "deploy" / "samples" / f"{name}.toml"
    given = tomllib.loads(path.read_text())
    smaller = {"run.nodes": 4 if given["graph"]["kind"] == "hypercube" else 5, "walk.hops": 8, "walk.laps": 2}
    smaller |= {"graph.degree": 4, "gossip.rounds": 2, "gossip.activations": 6, "shuffle.rounds": 2, "task.rounds": 2}
    wanted = [f"{key}={value}" for key, value in smaller.items() if key.split(".")[1] in {"nodes", *_keys(given, key)}]
    return spec_to_toml(load_spec(path, wanted))


def _keys(given: dict[str, Any], key: str) -> Iterable[str]:
    return given.get(key.split(".", maxsplit=1)[0], {})


SAMPLES: Final = sorted(path.stem for path in (TOP / "deploy" / "samples").glob("*.toml"))
EVERYBODY: Final = lambda run: [(peer,) for peer in (*ROLES, *range(run.n))]  # noqa: E731
DATA: Final = Aspect("data", EVERYBODY, lambda run: run.moved, lambda _run, _observer: None)
LATER: Final = {"calm": CALM, "somebody gone": Faults(jitter_s=0.0, crashes=(Crash(2, at_s=0.0075, down_s=None),))}


@cache
def with_other_data(name: str, what: str) -> tuple[Run, Run]:
    """The same outcome of chance with two assignments of data to users."""
    text = small(name)
    with remembered_crypto():
        one, other = (Run(text, LATER[what], moved=moved) for moved in (0, 2))
    return one, other


@pytest.mark.parametrize("name", SAMPLES)
def test_nothing_but_values_depends_on_data(name: str) -> None:
    nothing_leaks(with_other_data(name, "calm"), DATA)


@pytest.mark.parametrize("name", [name for name in SAMPLES if not name.startswith(("ring", "vector"))])
def test_nor_if_somebody_is_put_out(name: str) -> None:
    runs = with_other_data(name, "somebody gone")
    assert all(run.world.out == [2] for run in runs)
    nothing_leaks(runs, DATA)


# What is given above is what claims take to be given: none of them rests on less.

GIVEN: Final = {
    ("walk.sum", "node"): WALKS,
    ("shuffle.all", "curator"): SHUFFLED,
    ("shuffle.single", "curator"): SHUFFLED,
}


def claims_that_hide(run: Run) -> set[tuple[str, str]]:
    """Protocol and observer of claims that are bounds, and whose condition is less than everything public."""
    views = {peer: read(bytes(process.disk.view)) for peer, process in run.world.processes.items()}
    incomplete = list(run.world.out)
    audit = audit_run(run.world.run, Recorded(run.world.run, views), incomplete, 1e-5, ())
    protocol = run.world.run.spec.run.protocol
    return {(protocol, claim.observer) for claim in audit.claims if claim.bound and claim.conditioning != "public"}


def test_every_protocol_is_looked_at() -> None:
    assert {load_spec(TOP / "deploy" / "samples" / f"{name}.toml").run.protocol for name in SAMPLES} == set(names())


@pytest.mark.parametrize("name", SAMPLES)
def test_claims_that_hide_something_are_among_these(name: str) -> None:
    assert claims_that_hide(with_other_data(name, "calm")[0]) <= set(GIVEN)


@pytest.mark.parametrize("name", ["complete_sum", "shuffle_all", "shuffle_single"])
def test_after_an_exclusion_nothing_is_claimed_to_be_hidden(name: str) -> None:
    """Who is put out, and when, and what is asked then tell of routes."""
    assert claims_that_hide(with_other_data(name, "calm")[0])
    assert not claims_that_hide(with_other_data(name, "somebody gone")[0])


# The law fails where something leaks


def telling(owner: type, name: str, leaky: Callable[..., Any]) -> AbstractContextManager[Any]:
    """The method of that name, with what it did before as first argument."""
    honest = getattr(owner, name)
    return patch.object(owner, name, lambda self, *given, **named: leaky(honest, self, *given, **named))


def count_to_bootstrap(honest: Any, self: Participant, sender: Peer, message: Message, *rest: Any) -> Step:
    """With the result bootstrap hears how often tokens were here."""
    step: Step = honest(self, sender, message, *rest)
    if message.type != messages.RESULT:
        return step
    told = Send(BOOTSTRAP, Message(messages.ALIVE, (self._machine._visits,)))  # type: ignore[attr-defined]
    return step.then(Step((told,)))


def flag_by_count(honest: Any, self: Peers, peer: Peer, payload: bytes, value: bytes = b"") -> None:
    """A flag of an acknowledgement is set where the number of messages sent so far is odd."""
    if payload[0] == CONTROL and self.messages_sent % 2:
        payload = bytes((CONTROL | POKE,)) + payload[1:]
    honest(self, peer, payload, value)


def frame_to_guardian(honest: Any, self: Peers, arrival: Any, *rest: Any) -> None:
    """When a token comes, an empty frame goes to whoever one came from before."""
    before = getattr(self, "leaky", None)
    if before is not None and arrival.peer >= 0:
        self.frame(before, self.link(before).control(0))
    if arrival.peer >= 0:
        self.leaky = arrival.peer  # type: ignore[attr-defined]
    honest(self, arrival, *rest)


def later_by_count(honest: Any, self: Peers, peer: Peer, *rest: Any) -> None:
    """To the curator goes an empty frame more for each message that was sent before."""
    if peer == CURATOR:
        for _ in range(self.messages_sent):
            self.frame(CURATOR, self.link(CURATOR).control(0))
    honest(self, peer, *rest)


LEAKS: Final = {
    "a count for bootstrap": (Participant, "receive", count_to_bootstrap, {"paths, from the roles"}),
    "a flag": (Peers, "frame", flag_by_count, {"paths", "paths, from the roles"}),
    "an empty frame": (Peers, "took", frame_to_guardian, {"paths"}),
    "how many frames": (Peers, "send", later_by_count, {"paths, from the roles"}),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_a_control_message_that_tells_of_paths_is_found(leak: str) -> None:
    owner, name, leaky, aspects = LEAKS[leak]
    with telling(owner, name, leaky):
        assert leaking(outcomes(walk(4, 6), begin=(3, 1)), *WALKS) == aspects


def test_a_batch_in_the_order_in_which_it_came_is_found() -> None:
    with patch.object(Shuffle, "_permuted", lambda self, _draws: self._held):
        found = leaking(outcomes(shuffle(3, terms="rounds = 2")), *SHUFFLED)
    assert found == {"routes behind known reports"}


def test_a_sign_of_who_a_neighbour_met_is_found() -> None:
    def took(honest: Any, self: Peers, arrival: Any, *rest: Any) -> None:
        if arrival.peer == STRANGERS[0]:
            for peer in sorted(other for other in self.links if other >= 0):
                self.frame(peer, self.link(peer).control(0))
        honest(self, arrival, *rest)

    with telling(Peers, "took", took):
        assert leaking(changing(), EDGES) == {"edges of others"}


@pytest.mark.parametrize("name", ["ring_sum", "gossip_average", "shuffle_all", "walk_sgd"])
def test_what_depends_on_data_is_found(name: str) -> None:
    def start(honest: Any, self: Participant, *rest: Any) -> Step:
        step: Step = honest(self, *rest)
        told = sum(repr(vars(self._machine._inputs)).encode()) % 97  # type: ignore[attr-defined]
        return step.then(Step((Send(BOOTSTRAP, Message(messages.ALIVE, (told,))),)))

    with telling(Participant, "start", start):
        assert leaking((Run(small(name), CALM, moved=moved) for moved in (0, 2)), DATA) == {"data"}
