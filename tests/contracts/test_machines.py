"""What every protocol's machine owes to hosts, auditors and peers. Protocols are found by name.

Each runs as the samples in `deploy/samples` say, so a new protocol needs a sample there and no line here. Its
machines are driven alone, and as a `Participant` wraps them in a real run.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.core import messages
from p2pdp.core.endings import COMPLAINT, UNEXPECTED
from p2pdp.core.events import Event, Excluded, Machine, Received, Started, Woken, tell
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.spec import Spec
from p2pdp.core.step import Custody, Message, Send, Step
from p2pdp.core.values import LinearForm
from p2pdp.files.data import load_data
from p2pdp.files.spec import load_spec
from p2pdp.protocols import names, protocol
from p2pdp.protocols.contract import Estimate, Start
from p2pdp.protocols.participant import Participant
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.protocols.walk.walking import VALUE_MAX
from p2pdp.tasks.inputs import Inputs, SymbolicInputs
from p2pdp.tasks.reports import NAME_BYTES, SEAL_BYTES, ReportInputs
from p2pdp.wire.codec import pack_message, pack_value, unpack_message
from tests.support.gossip_world import coins_of
from tests.support.sources import TOP
from tests.support.walk_world import SeededDraws, SymbolDraws, World

SAMPLES = sorted((TOP / "deploy" / "samples").glob("*.toml"))
SPECS: dict[str, Spec] = {path.stem: load_spec(path) for path in SAMPLES}
DECLARED = sorted({one.name for name in names() for one in protocol(name).messages})


def seal(text: bytes, _seed: bytes) -> bytes:
    return text + bytes(SEAL_BYTES)


def opened(value: Any) -> Any:
    """A report without the name and the seal around it."""
    return value[NAME_BYTES:-SEAL_BYTES] if isinstance(value, bytes) else value


class Bench:
    """The plan, data and machines of one sample."""

    def __init__(self, spec: Spec) -> None:
        n = spec.run.nodes
        self.data = load_data(spec, n)
        rows = self.data.stated if spec.privacy.unit == "record" else None
        self.run: RunPlan = plan_run(spec, n, self.data.dimensions, rows=rows)
        self.plan = self.run.plan
        self.protocol = self.run.protocol
        self.inputs = {user: self.protocol.inputs(self.plan, self.data.user(user)) for user in range(n)}

    def live(self, user: Peer) -> Inputs:
        return self.ready(self.inputs[user][0])

    def ready(self, inputs: Any) -> Inputs:
        """Reports are sealed in a way that anybody can open."""
        return inputs.sealed_with(seal) if isinstance(inputs, ReportInputs) else inputs

    def symbols(self, user: Peer) -> Inputs:
        return SymbolicInputs(user, len(self.inputs[user][1]))

    def machine(self, user: Peer, inputs: Inputs, *, wrapped: bool = False) -> Machine:
        inner = self.run.machine(user, self.run.neighbours(user), inputs)
        return Participant(user, inner, self.protocol.messages) if wrapped else inner

    def world(
        self,
        inputs: Callable[[Peer], Inputs] | None = None,
        draws: Callable[[Peer], Any] = SeededDraws,
        *,
        wrapped: bool = False,
    ) -> World:
        """A world in which all have started, and the items are about to begin."""
        users = range(self.run.n)
        made = {user: self.machine(user, (inputs or self.live)(user), wrapped=wrapped) for user in users}
        world = World(self.plan, made, {user: draws(user) for user in users}, collector=self.run.collector())
        for user, coins in enumerate(coins_of(7, self.run.n)):
            world.draws[user].coins = coins
        for user in users:
            world.happens(user, Started())
            if wrapped:
                world.post(user, BOOTSTRAP, Message(messages.GO))
        for send in self.run.opening(SeededDraws(7)):
            world.post(send.to, BOOTSTRAP, send.message)
        world.begin()
        return world

    def ended(self, world: World) -> bool:
        """All items have come to their totals, or all users have finished, or the curator has what it needs."""
        if world.collector is not None:
            return bool(world.collector.complete)
        if self.plan.starts:
            return sorted(world.totals) == [start.item for start in self.plan.starts]
        done = [sender for sender, send in world.others if send.message.type == messages.FINISHED]
        return sorted(done) == list(range(self.run.n))

    def published(self, world: World) -> Any:
        if world.collector is not None:
            return self.protocol.publish(self.plan, [world.collector.result()])
        told = [opened(send.message.value) for _, send in sorted(world.others, key=lambda one: one[0])]
        told += [world.totals[item] for item in sorted(world.totals)]
        return self.protocol.publish(self.plan, [value for value in told if value is not None])


@pytest.fixture(scope="module", params=SPECS)
def bench(request: pytest.FixtureRequest) -> Bench:
    return Bench(SPECS[request.param])


def flat(step: Step) -> tuple[Any, ...]:
    """A step as plain values that can be compared, arrays included."""

    def packed(value: Any) -> Any:
        return "form" if isinstance(value, LinearForm) else pack_value(value)

    sends = [(send.to, pack_message(send.message), packed(send.message.value), send.custody) for send in step.sends]
    outputs = [(output.type, output.fields, packed(output.value)) for output in step.outputs]
    return sends, step.wake_at_s, outputs, step.faults


def test_each_protocol_has_a_sample() -> None:
    assert {spec.run.protocol for spec in SPECS.values()} == set(names())


def test_plans_are_equal_hashable_and_frozen(bench: Bench) -> None:
    facts = bench.run.facts
    again = bench.protocol.plan(bench.run.spec, bench.run.n, bench.data.dimensions, facts)
    assert again == bench.plan
    assert hash(again) == hash(bench.plan)
    for field in dataclasses.fields(bench.plan):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(again, field.name, None)
    assert bench.plan != bench.protocol.plan(bench.run.spec, bench.run.n + 1, bench.data.dimensions, facts)


def test_starts_name_each_item_once_and_users_who_are_there(bench: Bench) -> None:
    starts = bench.plan.starts
    assert [start.item for start in starts] == list(range(len(starts)))
    assert all(isinstance(start, Start) and 0 <= start.user < bench.run.n for start in starts)


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_run_ends_without_faults_and_can_be_estimated(bench: Bench, wrapped: bool) -> None:
    world = bench.world(wrapped=wrapped)
    world.run()
    assert not world.faults
    assert all(isinstance(step, Step) for step in world.steps)
    assert bench.ended(world)
    estimate = bench.protocol.estimate(bench.plan, bench.published(world), len(world.visits))
    assert isinstance(estimate, Estimate)
    if bench.plan.starts:  # else the errors follow from what was exchanged
        assert np.shape(estimate.value or 0) == np.shape(estimate.standard_error or 0)
        assert np.min(estimate.standard_error) > 0
    assert estimate.value is None or np.isfinite(estimate.value).all()


def test_the_same_events_and_draws_give_the_same_steps(bench: Bench) -> None:
    worlds = [bench.world(), bench.world()]
    for world in worlds:
        world.run()
    first, second = ([flat(step) for step in world.steps] for world in worlds)
    assert first == second
    other = bench.world(draws=lambda peer: SeededDraws(peer + 1000))
    other.run()
    assert [flat(step) for step in other.steps] != first


def test_inputs_that_the_private_ledger_kept_give_the_same_steps(bench: Bench) -> None:
    first = bench.world()
    second = bench.world(lambda user: bench.ready(bench.protocol.inputs_again(bench.plan, bench.inputs[user][1])))
    first.run()
    second.run()
    assert [flat(step) for step in first.steps] == [flat(step) for step in second.steps]


class Overheard:
    """A machine whose messages are noted as they come."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.heard: list[Event] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._machine, name)

    def receive(self, sender: Peer, message: Message, now_s: float, draws: Any) -> Step:
        self.heard.append(Received(sender, message))
        return self._machine.receive(sender, message, now_s, draws)


@pytest.mark.parametrize("seed", range(8))
def test_in_whatever_order_messages_come_a_machine_goes_forwards(bench: Bench, seed: int) -> None:
    """Messages of a run, some of them left out, doubled or out of order, between starts, wakes and exclusions."""
    world = bench.world()
    overheard = world.machines[0] = Overheard(world.machines[0])
    world.run()
    random, n = Random(seed), bench.run.n  # noqa: S311 - nothing is kept secret with it
    events = [event for event in overheard.heard if random.random() < 0.9]
    events += random.sample(events, len(events) // 8)
    for _ in range(len(events) // 4):
        one, other = random.randrange(len(events)), random.randrange(len(events))
        events[one], events[other] = events[other], events[one]
    for event in (Started(), Started(), Woken(), Woken(), Excluded(random.randrange(1, n)), Excluded(n - 1)):
        events.insert(random.randrange(len(events) + 1), event)
    machine, draws = bench.machine(0, bench.live(0)), SeededDraws(seed)
    draws.coins = world.draws[0].coins
    order = list(type(getattr(machine, "_phase", None)) if hasattr(machine, "_phase") else ())
    phases = []
    for number, event in enumerate(events):
        step = tell(machine, event, float(number), draws)
        phases.append(order.index(machine._phase) if order else 0)  # type: ignore[attr-defined]
        assert {fault.kind for fault in step.faults} <= {"unexpected_message", "too_many_visits", "contradiction"}
    assert phases == sorted(phases)
    assert phases[-1] > 0 or not order


class Sleepless:
    """A machine that is woken, for no reason and if it never waits too late, after all else that happens to it."""

    def __init__(self, machine: Machine, late_s: float) -> None:
        self._machine = machine
        self._late_s = late_s
        self.woken: list[Step] = []

    @property
    def finished(self) -> bool:
        return self._machine.finished

    def start(self, now_s: float, draws: Any) -> Step:
        return self._then_woken(tell(self._machine, Started(), now_s, draws), now_s, draws)

    def receive(self, sender: Peer, message: Message, now_s: float, draws: Any) -> Step:
        return self._then_woken(tell(self._machine, Received(sender, message), now_s, draws), now_s, draws)

    def wake(self, now_s: float, draws: Any) -> Step:
        return tell(self._machine, Woken(), now_s, draws)

    def excluded(self, peer: Peer, now_s: float, draws: Any) -> Step:
        return tell(self._machine, Excluded(peer), now_s, draws)

    def _then_woken(self, step: Step, now_s: float, draws: Any) -> Step:
        self.woken += [self.wake(now_s, draws), self.wake(now_s + self._late_s, draws)]
        return step


def test_late_and_spurious_wakes_are_harmless(bench: Bench) -> None:
    calm, restless = bench.world(), bench.world()
    late_s = 1e6 if bench.plan.starts else 0.0  # who waits for a neighbour goes on without it when it is late
    restless.machines = {user: Sleepless(machine, late_s) for user, machine in restless.machines.items()}
    calm.run()
    restless.run()
    assert [flat(step) for step in calm.steps] == [flat(step) for step in restless.steps]
    woken = [step for machine in restless.machines.values() for step in machine.woken]  # type: ignore[attr-defined]
    assert woken
    assert not any(step.sends or step.outputs for step in woken)


class Wrapped:
    """A machine but for what a test has it do otherwise; `inner` is the protocol's own."""

    def __init__(self, bench: Bench, user: Peer, machine: Machine) -> None:
        self._bench = bench
        self._user = user
        self._machine = machine
        self.inner = machine._machine if isinstance(machine, Participant) else machine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._machine, name)


class Hopping(Wrapped):
    """A machine that hops where it can, and that others try to make hop where it must not."""

    def __init__(self, bench: Bench, user: Peer, machine: Machine) -> None:
        super().__init__(bench, user, machine)
        self._hop = bench.protocol.fast_hop(bench.plan, self.inner)
        self.hops = 0

    def receive(self, sender: Peer, message: Message, now_s: float, draws: Any) -> Step:
        if self._hop is None or message.type != messages.TOKEN or type(message.value) is not int:
            return self._machine.receive(sender, message, now_s, draws)
        (item, step), value = message.fields, message.value
        last, most = self._bench.plan.steps, VALUE_MAX
        wrong = [(sender, item, 0, value), (sender, item, last, value), (sender, item, step, most + 1)]
        wrong += [
            (sender, -1, step, value),
            (sender, self._bench.plan.tokens, step, value),
            (sender, item, 5, -most - 1),
        ]
        before = len(draws.drawn), len(draws.chosen)
        assert not any(self._hop(*token, draws) for token in wrong)
        assert (len(draws.drawn), len(draws.chosen)) == before
        moved = self._hop(sender, item, step, value, draws)
        if moved is None:
            assert (len(draws.drawn), len(draws.chosen)) == before
            return self._machine.receive(sender, message, now_s, draws)
        self.hops += 1
        assert self._hop(sender, item, step, value, draws) is None, "it was here already"
        to, after = moved
        if isinstance(self._machine, Participant):
            self._machine.hopped([(sender, item, step, to, step + 1)])
        custody = None if to == self._user else Custody(item, step + 1)
        return Step(sends=(Send(to, Message(messages.TOKEN, (item, step + 1), after), custody),))


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_hop_is_what_receive_would_have_done(bench: Bench, wrapped: bool) -> None:
    plain, hopping = bench.world(wrapped=wrapped), bench.world(wrapped=wrapped)
    hopping.machines = {user: Hopping(bench, user, machine) for user, machine in hopping.machines.items()}
    for world in (plain, hopping):
        world.run()
    said = [[flat(step) for step in world.steps] for world in (plain, hopping)]
    assert said[0] == said[1]
    hops = sum(machine.hops for machine in hopping.machines.values())  # type: ignore[attr-defined]
    assert (hops > 0) == (bench.run.spec.run.protocol == "walk.sum" and bench.plan.order != "ring")
    for user in range(bench.run.n):  # and it knows as much of it
        after = [told_of_exclusion(world, user, (user + 1) % bench.run.n) for world in (plain, hopping)]
        assert after[0] == after[1]


def told_of_exclusion(world: World, user: Peer, out: Peer) -> object:
    return flat(tell(world.machines[user], Excluded(out), 9.0, SeededDraws(0)))


class Exchanging(Wrapped):
    """A machine that takes exchanges in one piece where it can, and that others try to make take wrong ones."""

    def __init__(self, bench: Bench, user: Peer, machine: Machine) -> None:
        super().__init__(bench, user, machine)
        self._exchanger = bench.protocol.fast_exchange(bench.plan, self.inner)
        if self._exchanger is not None and self._exchanger.passes and isinstance(machine, Participant):
            self._exchanger = self._exchanger._replace(exchange=machine.noting(self._exchanger.exchange))
        self.exchanges = 0

    def receive(self, sender: Peer, message: Message, now_s: float, draws: Any) -> Step:
        exchanger, value = self._exchanger, message.value
        if exchanger is None or message.type != exchanger.type:
            return self._machine.receive(sender, message, now_s, draws)
        number, *others = message.fields
        assert len(message.fields) == exchanger.fields
        odd = [0, -1, number - 1, number + 2**40, self._bench.plan.length + 1]
        wrong = [(sender, (one, *others), value) for one in odd]
        wrong += [(sender, (number, *(other + 2**20 for other in others)), value)] if others else []
        wrong += [(sender, message.fields, one) for one in (math.inf, -math.inf, math.nan, 1e300)]
        wrong += [(sender, message.fields, np.full(3, one)) for one in (math.inf, -math.inf, math.nan, 1e300)]
        wrong += [(sender, message.fields, np.zeros(10**4)), (sender, message.fields, np.zeros(3, dtype=np.int64))]
        wrong += [(one, message.fields, value) for one in (CURATOR, BOOTSTRAP, 10**6)]
        if exchanger.passes:  # of which more numbers, and users, are possible ones
            refused = [self._bench.run.check(Message(message.type, *rest)) is not None for _, *rest in wrong]
            wrong = [one for one, is_refused in zip(wrong, refused, strict=True) if is_refused or one[0] < 0]
            assert len(wrong) > 10
        before = len(draws.drawn), len(draws.chosen)
        assert not any(exchanger.exchange(*one, now_s, draws) for one in wrong)
        assert (len(draws.drawn), len(draws.chosen)) == before
        step = exchanger.exchange(sender, message.fields, value, now_s, draws)
        assert step is not None
        self.exchanges += 1
        assert exchanger.exchange(sender, message.fields, value, now_s, draws) is None, "it was here already"
        return step


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_fast_exchange_is_what_receive_would_have_done(bench: Bench, wrapped: bool) -> None:
    plain, fast = bench.world(wrapped=wrapped), bench.world(wrapped=wrapped)
    fast.machines = {user: Exchanging(bench, user, machine) for user, machine in fast.machines.items()}
    for world in (plain, fast):
        world.run()
    assert [flat(step) for step in plain.steps] == [flat(step) for step in fast.steps]
    exchanges = sum(machine.exchanges for machine in fast.machines.values())  # type: ignore[attr-defined]
    declared = bench.run.spec.run.protocol == "gossip.average"
    declared = declared or (bench.run.spec.run.protocol in ("walk.sum", "walk.sgd") and bench.plan.shape != ())
    assert (exchanges > 0) == declared
    for user in range(bench.run.n):
        after = [told_of_exclusion(world, user, (user + 1) % bench.run.n) for world in (plain, fast)]
        assert after[0] == after[1]


def test_messages_survive_the_wire_and_pass_the_check(bench: Bench) -> None:
    world = bench.world()
    world.run()
    sent = [send.message for step in world.steps for send in step.sends]
    assert sent
    for message in sent:
        packed, value = pack_message(message), pack_value(message.value)
        arrived = unpack_message(packed, value)
        assert (arrived.type, arrived.fields) == (message.type, message.fields)
        assert pack_value(arrived.value) == value
        assert bench.run.check(arrived) is None


def test_over_symbols_the_machine_does_the_same_without_looking(bench: Bench) -> None:
    live, symbolic = bench.world(), bench.world(bench.symbols, lambda peer: SymbolDraws(peer, peer))
    live.run()
    symbolic.run()
    assert len(live.steps) == len(symbolic.steps)
    for one, other in zip(live.steps, symbolic.steps, strict=True):
        assert [(s.to, s.message.type, s.message.fields, s.custody) for s in one.sends] == [
            (s.to, s.message.type, s.message.fields, s.custody) for s in other.sends
        ]
    assert [mechanism for mechanism, _ in live.drawn] == [mechanism for mechanism, _ in symbolic.drawn]
    if bench.plan.starts:
        published = bench.published(symbolic).expand()
        assert sum(weight for source, weight in published.items() if source.kind != "draw") == len(live.visits)


def told_bootstrap(step: Step) -> list[tuple[object, ...]]:
    """Return the complaints in a step, which must send nothing else."""
    assert all(send.to == BOOTSTRAP and send.message.type == COMPLAINT for send in step.sends)
    return [tuple(send.message.fields) for send in step.sends]


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("kind", ["", "hello", "token ", "TOKEN", messages.READY, messages.SEEN, messages.DONE])
def test_unknown_messages_are_faults(bench: Bench, wrapped: bool, kind: str) -> None:
    world = bench.world(wrapped=wrapped)
    for sender in (1, 2, BOOTSTRAP, CURATOR):
        for fields in ((), (0,), (0, 1), ("x", b"y", [1])):
            draws = SeededDraws(0)
            step = tell(world.machines[0], Received(sender, Message(kind, fields, 5)), 1.0, draws)
            assert [fault.peer for fault in step.faults] == [sender]
            assert step.outputs == ()
            assert told_bootstrap(step) in ([], [(sender, UNEXPECTED)] if wrapped and sender != BOOTSTRAP else [])
            assert draws.drawn == draws.chosen == []


@pytest.mark.parametrize("wrapped", [False, True])
def test_messages_of_excluded_peers_are_faults_and_change_nothing(bench: Bench, wrapped: bool) -> None:
    world = bench.world(wrapped=wrapped)
    world.run()
    arrived = {(send.to, sender, send.message.type): send.message for sender, send in world.sends}
    assert arrived
    for (to, sender, _), message in arrived.items():
        if to not in world.machines:
            continue
        draws = SeededDraws(0)
        machine = bench.machine(to, bench.live(to), wrapped=wrapped)
        told = tell(machine, Excluded(sender), 1.0, draws)
        assert all(send.to == BOOTSTRAP for send in told.sends)
        step = tell(machine, Received(sender, message), 2.0, draws)
        assert [fault.peer for fault in step.faults] == [sender]
        assert (step.sends, step.outputs) == ((), ())
        assert draws.drawn == draws.chosen == []


def test_texts_show_no_value_and_no_route(bench: Bench) -> None:
    world = bench.world(wrapped=True)
    world.run()
    shown = [
        *(repr(step) for step in world.steps),
        *(repr(machine) for machine in world.machines.values()),
        *(repr(Received(sender, send.message)) for sender, send in world.sends),
        *(repr(inputs) for inputs, _ in bench.inputs.values()),
    ]
    values = [value for _, value in world.drawn]
    values += [send.message.value for step in world.steps for send in step.sends if send.message.value is not None]
    values += [value for _, kept in bench.inputs.values() for value in kept]
    values = [opened(value)[0] if isinstance(value, bytes) and len(value) > SEAL_BYTES else value for value in values]
    values = [one for value in values for one in (value if isinstance(value, list) else [value])]
    values = [int.from_bytes(value[:8], "little") if isinstance(value, bytes) else value for value in values]
    assert values
    secret = {str(number) for value in values for number in np.ravel(value).tolist() if abs(number) > 10**4}
    numbers = set(re.findall(r"-?\d+", " ".join(shown)))
    assert not secret & numbers
    assert not any(re.search(r"(to|sender|step|item)=", text) for text in shown)


INT64 = st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from([2**62, 2**62 + 1, 2**63 - 1, -(2**62), -(2**63)]))
ANY_FIELD = st.one_of(
    st.integers(-3, 40), INT64, st.text(max_size=3), st.binary(max_size=3), st.lists(INT64, max_size=2)
)
FIELDS = st.one_of(
    st.lists(ANY_FIELD, max_size=4), st.tuples(st.integers(0, 1), st.integers(0, 5)).map(list), st.just([0, 7])
)
VALUES = st.one_of(
    st.none(),
    INT64,
    st.floats(allow_nan=False, allow_infinity=False),
    st.binary(max_size=9),
    st.lists(INT64, max_size=5).map(lambda items: np.array(items, dtype=np.int64)),
    st.lists(INT64, min_size=3, max_size=4).map(lambda items: np.array(items, dtype=np.int64)),
    st.lists(st.floats(), max_size=4).map(lambda items: np.array(items, dtype=np.float64)),
)
TYPES = st.one_of(st.sampled_from([messages.TOKEN, messages.TOTAL]), st.sampled_from(DECLARED), st.text(max_size=8))


@pytest.mark.parametrize("name", SPECS)
@settings(max_examples=150)
@given(kind=TYPES, fields=FIELDS, value=VALUES, sender=st.integers(5, 7))
def test_nothing_that_a_user_sends_raises(name: str, kind: str, fields: list[Any], value: Any, sender: Peer) -> None:
    """The host asks for the check first; what it lets pass reaches the machine."""
    bench = _bench(name)
    me, sender = (min(user, bench.run.n - 8 + user) for user in (7, sender))  # the last users of a small sample
    message = Message(kind, tuple(fields), value)
    wrong = bench.run.check(message)
    assert wrong is None or isinstance(wrong, str)
    if wrong is None:
        step = tell(bench.machine(me, bench.live(me), wrapped=True), Received(sender, message), 1.0, SeededDraws(0))
        assert isinstance(step, Step)
        for send in step.sends:  # what was let pass can be passed on
            assert pack_message(send.message)
            pack_value(send.message.value)


_BENCHES: dict[str, Bench] = {}


def _bench(name: str) -> Bench:
    if name not in _BENCHES:
        _BENCHES[name] = Bench(SPECS[name])
    return _BENCHES[name]
