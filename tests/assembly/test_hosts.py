from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from p2pdp.assembly.hosts import (
    bootstrap_host,
    curator_host,
    exclusion_signer,
    survivors_signer,
    timing_of,
    user_host,
)
from p2pdp.core.errors import VerificationFailed
from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.core.step import Message
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.crypto.identity import verify_labelled
from p2pdp.files.spec import parse_spec
from p2pdp.ledger import records
from p2pdp.ledger.journal import PRIVATE, VIEW, Journal
from p2pdp.ledger.records import EXCLUSION_LABEL, SURVIVORS_LABEL
from p2pdp.mechanisms.clipping import Bounds, clip
from p2pdp.peer.acknowledgements import Acknowledgements, PacketSpace
from p2pdp.peer.link import Link
from p2pdp.protocols.decision import survivors_bytes
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.wire.codec import pack_message, pack_value
from tests.support.toys import RUN_ID, UniqueDraws, credentials, forged, identity, link_to

SPEC = """
[run]
protocol = "walk.sum"
nodes = 3
[graph]
kind = "complete"
[walk]
order = "random"
hops = 6
[noise]
mechanism = "gaussian"
sigma = 2.0
[data]
kind = "uniform"
clip = [0.0, 1.0]
"""
RUN = plan_run(parse_spec(SPEC, None, ()), 3, 1, None)
ROWS = clip([0.25, 7.0], Bounds(0.0, 1.0))


class Disk:
    def __init__(self, me: int, run: RunPlan = RUN) -> None:
        self.me, self.run = me, run
        self.files = {VIEW: b"", PRIVATE: b""}
        self.links: dict[int, Link] = {}  # of peers that the test plays

    def boot(self, rows: Any = None) -> Any:
        journal = Journal(self.files[VIEW], self.files[PRIVATE])
        parts = (self.run, credentials(self.me, 3), journal, UniqueDraws(), SeededEntropy(4, f"hosts/{self.me}"))
        if self.me == BOOTSTRAP:
            self.host = bootstrap_host(*parts)
        elif self.me == CURATOR:
            self.host = curator_host(*parts)
        else:
            self.host = user_host(*parts, rows)
        return self.carry(self.host.begin(1.0))

    def carry(self, effects: Any) -> Any:
        for name, data in effects.writes:
            self.files[name] += data
        return effects

    def hear(self, sender: int, *told: Message) -> Any:
        link = self.links.setdefault(sender, link_to(self.me))
        for message in told:
            value = b"" if message.value is None else bytes(16) + pack_value(message.value)
            payload = link.data(link.push(pack_message(message), value))
            effects = self.carry(self.host.frame(forged(sender, self.me, payload, 3), 2.0))
        return effects

    def kinds(self, name: str) -> list[str]:
        return [records.KIND_NAMES[record.kind] for record in records.read(self.files[name]).records]


def test_a_users_inputs_are_in_its_private_ledger_before_anything_happens() -> None:
    disk = Disk(0)
    effects = disk.boot(ROWS)
    names = [name for name, data in effects.writes if data != records.LEDGER_MAGIC]
    assert names.index(VIEW) == names.count(PRIVATE)
    assert disk.kinds(PRIVATE) == ["opened", "inputs", "note"]
    assert disk.kinds(VIEW) == ["opened", "started", "sent"]
    note = records.read(disk.files[PRIVATE]).records[2]
    assert (note.value or b"")[16:] == b"clipped 1"


def test_a_restart_takes_the_inputs_it_began_with_whatever_the_data_says_now() -> None:
    disk = Disk(0)
    disk.boot(ROWS)
    before = dict(disk.files)
    disk.boot(clip([0.9], Bounds(0.0, 1.0)))
    journal = Journal(before[VIEW], before[PRIVATE])
    assert disk.files[PRIVATE] == before[PRIVATE]
    values = [Fraction(value) for value in records_inputs(journal)]
    assert values == [RUN.protocol.inputs(RUN.plan, ROWS)[1][0], RUN.protocol.inputs(RUN.plan, ROWS)[1][1]]


def records_inputs(journal: Journal) -> list[int]:
    from p2pdp.wire.codec import unpack_value

    assert journal.inputs is not None
    values: list[int] = unpack_value(journal.inputs)
    return values


def test_a_restart_without_its_private_ledger_is_refused() -> None:
    disk = Disk(0)
    disk.boot(ROWS)
    disk.files[PRIVATE] = b""
    with pytest.raises(VerificationFailed, match="inputs"):
        disk.boot(ROWS)


def test_a_new_user_without_rows_is_refused() -> None:
    with pytest.raises(VerificationFailed, match="inputs"):
        Disk(0).boot()


def test_a_stop_between_the_opening_and_the_inputs_opens_the_private_ledger_once() -> None:
    disk = Disk(0)
    disk.boot(ROWS)
    first = records.read(disk.files[PRIVATE])
    assert first.records[1].kind == records.INPUTS
    whole = disk.files[PRIVATE]
    cut = next(at for at in range(17, len(whole)) if len(records.read(whole[:at]).records) == 1)
    disk.files = {VIEW: b"", PRIVATE: whole[:cut]}
    disk.boot(ROWS)
    assert disk.kinds(PRIVATE) == ["opened", "inputs", "note"]


@pytest.mark.parametrize("me", [BOOTSTRAP, CURATOR])
def test_roles_open_their_private_ledgers_once(me: int) -> None:
    disk = Disk(me)
    disk.boot()
    assert disk.kinds(PRIVATE) == ["opened"]
    disk.boot()
    assert disk.kinds(PRIVATE) == ["opened"]


def test_the_view_opens_with_what_auditors_need() -> None:
    for neighbours, listed in ((None, None), ((1, 2), [1, 2])):
        journal = Journal()
        place = replace(credentials(0, 3), neighbours=neighbours)
        host = user_host(RUN, place, journal, UniqueDraws(), SeededEntropy(1, "a"), ROWS)
        view = b"".join(data for name, data in host.begin(0.0).writes if name == VIEW)
        opened = records.read(view).records[0]
        assert opened.body == (VIEW, RUN_ID, 0, place.roster.digest, 2, listed)


def test_tokens_of_a_wrong_form_are_refused_by_users_and_curator() -> None:
    cases = [(0, Message("token", (0, 99), 5)), (0, Message("token", (0, 1), 0.5))]
    for me, message in (*cases, (CURATOR, Message("total", (9, 7), 5))):
        disk = Disk(me)
        disk.boot(ROWS)
        before = len(disk.kinds(VIEW))
        effects = disk.hear(1, message)
        assert [fault.kind for fault in effects.faults] in (["malformed"], ["bad_value"])
        assert disk.kinds(VIEW)[before:] == ["refused", "sent"], "it is recorded as refused, and bootstrap is told"


GARBAGE: list[tuple[Any, ...]] = [(), (1,), (-9,), ([],), (0, b""), (99, b"x"), (0, [], []), (0, [[1, 2]], [[3, 4]])]
GARBAGE += [(99, 0, 0), (-1, 0, 0), (-2, -1, 0), (0, 0, 0), (1 << 62, 1 << 62), (b"",), ("a", "b")]
KINDS = "ready go begin token total result done head skeleton over silent probe alive spared out seen lost kept ward"


@pytest.mark.parametrize("me", [0, BOOTSTRAP, CURATOR])
@pytest.mark.parametrize("kind", [*KINDS.split(), "made up"])
def test_no_message_of_a_peer_raises(me: int, kind: str) -> None:
    for sender in {1, BOOTSTRAP, CURATOR} - {me}:
        for fields in GARBAGE:
            disk = Disk(me)
            disk.boot(ROWS)
            for value in (None, 5):
                disk.hear(sender, Message(kind, fields, value))
            disk.carry(disk.host.wake(100.0))


@pytest.mark.parametrize("value", [(1 << 63) - 1, -(1 << 63), 1 << 62])
def test_a_token_that_no_honest_sum_could_reach_raises_nothing(value: int) -> None:
    for me, message in ((0, Message("token", (0, 1), value)), (CURATOR, Message("total", (0, 7), value))):
        disk = Disk(me)
        disk.boot(ROWS)
        disk.hear(1, message)


def test_waits_follow_from_the_patience_of_the_spec() -> None:
    short = replace(RUN, spec=replace(RUN.spec, run=replace(RUN.spec.run, patience_s=1.0)))
    for run in (RUN, short):
        timing = timing_of(run)
        assert timing.patience_s == run.spec.run.patience_s
        assert timing.tick_s < timing.resend_s < timing.patience_s
        assert timing.rejoin_s < timing.patience_s


@pytest.mark.parametrize("patience_s", [0.5, 1.0, 10.0])
def test_before_anybody_is_put_out_for_silence_each_message_is_sent_eight_times(patience_s: float) -> None:
    timing = timing_of(replace(RUN, spec=replace(RUN.spec, run=replace(RUN.spec.run, patience_s=patience_s))))
    waits = Acknowledgements(timing.tick_s, timing.resend_s, timing.resend_max_s)
    space = PacketSpace(0)
    space.push(b"message", b"")
    waits.sent(space, 0.0)
    times, now_s = [0.0], 0.0
    while waits.check_at_s is not None and (now_s := waits.check_at_s) < 3 * patience_s:
        if waits.overdue(now_s):
            waits.sent_again(space, now_s)
            times.append(now_s)
    assert len(times) >= 8


def test_an_exclusion_is_signed_for_run_and_peer() -> None:
    signature = exclusion_signer(identity(BOOTSTRAP), RUN_ID)(3)
    public = identity(BOOTSTRAP).public
    assert verify_labelled(public, signature, EXCLUSION_LABEL, RUN_ID, (3).to_bytes(4, "big"))
    assert not verify_labelled(public, signature, EXCLUSION_LABEL, RUN_ID, (4).to_bytes(4, "big"))
    assert not verify_labelled(public, signature, EXCLUSION_LABEL, bytes(16), (3).to_bytes(4, "big"))


def test_a_decision_is_signed_for_run_and_who_is_absent() -> None:
    signature = survivors_signer(identity(BOOTSTRAP), RUN_ID)([1, 3])
    public = identity(BOOTSTRAP).public
    assert verify_labelled(public, signature, SURVIVORS_LABEL, RUN_ID, survivors_bytes([1, 3]))
    assert not verify_labelled(public, signature, SURVIVORS_LABEL, RUN_ID, survivors_bytes([1]))
    assert not verify_labelled(public, signature, SURVIVORS_LABEL, bytes(16), survivors_bytes([1, 3]))
    assert not verify_labelled(public, signature, EXCLUSION_LABEL, RUN_ID, survivors_bytes([1, 3]))
