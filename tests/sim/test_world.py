"""The world itself; whole runs with all their faults are in `tests/scenarios`."""

from __future__ import annotations

import pytest

from p2pdp.core.errors import RunFailed
from p2pdp.core.expiry import Expired
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.crypto import identity as identities
from p2pdp.crypto.identity import Identity, RunKey
from p2pdp.sim.faults import Crash
from p2pdp.sim.process import Process
from p2pdp.sim.world import STALLED_S, run_id_of, why_not
from tests.support.fault_worlds import ring, walk, world_of


def test_it_ends_when_all_hosts_are_done() -> None:
    world = world_of(walk(4, 8))
    world.run_to_end()
    assert all(process.host is not None and process.host.done for process in world.processes.values())
    assert world.fault_counts() == {}
    assert world.roster.n == 4
    assert 0.0 < world.now_s < 5.0


def test_the_result_is_among_its_outputs_once() -> None:
    world = world_of(walk(4, 8))
    world.run_to_end()
    assert [(peer, output.type) for peer, output in world.outputs if output.recorded] == [(CURATOR, "result")]


def test_each_signature_is_checked_once_and_each_secret_agreed_on_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a complete graph a check at every user would take n^2 of them."""
    n, checked, agreed = 9, list[bytes](), list[bytes]()
    opened, agree = identities.crypto_sign_open, identities.crypto_box_beforenm
    monkeypatch.setattr(identities, "crypto_sign_open", lambda *given: checked.append(given[0]) or opened(*given))
    monkeypatch.setattr(identities, "crypto_box_beforenm", lambda *given: agreed.append(given[0]) or agree(*given))
    world = world_of(walk(n, 40 * n), seed=77)
    world.run_to_end()
    assert len(checked) == len(set(checked))
    assert len(agreed) == (n + 2) * (n + 1) // 2, "each pair, bootstrap and curator too"


def test_a_run_is_named_after_seed_and_spec() -> None:
    assert run_id_of(1, b"d" * 32) == run_id_of(1, b"d" * 32)
    assert len({run_id_of(1, b"d" * 32), run_id_of(2, b"d" * 32), run_id_of(1, b"e" * 32)}) == 3


def test_progress_is_told_in_hops() -> None:
    told: list[tuple[int, int]] = []
    world = world_of(walk(4, 3000))
    world.run_to_end(lambda done, steps: told.append((done, steps)))
    assert told
    assert all(steps == 3000 for _, steps in told)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_before_anybody_has_a_seat_there_is_no_roster() -> None:
    with pytest.raises(RunFailed, match="nobody is enrolled"):
        _ = world_of(walk(4, 8)).roster


def test_where_nothing_happens_any_more_it_stops_and_names_who_is_gone() -> None:
    world = world_of(walk(4, 8), 1, Crash(BOOTSTRAP, at_record=2, down_s=None))
    with pytest.raises(RunFailed, match="standstill; gone: bootstrap"):
        world.run_to_end()
    assert world.now_s > STALLED_S


def test_a_user_that_never_comes_is_named() -> None:
    text = ring(3, 1).replace("seed = 1", "seed = 1\nenrol_timeout_s = 60")
    world = world_of(text, 1, Crash(2, at_s=0.0, down_s=None))
    with pytest.raises(RunFailed, match="gone: 2"):
        world.run_to_end()


def test_a_seat_survives_a_crash_while_bootstrap_is_away() -> None:
    crashes = Crash(BOOTSTRAP, at_s=0.008, down_s=6.0), Crash(1, at_s=0.008), Crash(CURATOR, at_s=0.5)
    world = world_of(walk(4, 8), 1, *crashes)
    world.run_to_end()
    assert world.out == []


def expiring(text: str, at: str) -> str:
    return text.replace("seed = 1", f'seed = 1\nexpires = "1970-01-01T00:{at}+00:00"', 1)


def test_a_run_that_has_not_ended_when_it_expires_fails() -> None:
    """The simulated clock begins where clocks begin to count."""
    world = world_of(expiring(walk(4, 8), "10:00"))
    world.run_to_end()
    assert world.now_s < 600.0
    late = world_of(expiring(ring(3, 2), "00:05"), 1, Crash(1, at_s=0.01, down_s=None))
    with pytest.raises(Expired, match=r"expired at 1970-01-01T00:00:05\+00:00 .* cannot be resumed"):
        late.run_to_end()
    assert 1.0 < late.now_s < 5.0, "nothing happened after that moment"


def test_when_a_run_expires_is_part_of_what_everybody_signs() -> None:
    with_it, without, other = (
        world_of(text).run_id for text in (expiring(walk(4, 8), "10:00"), walk(4, 8), expiring(walk(4, 8), "10:01"))
    )
    assert len({with_it, without, other}) == 3


def test_crashes_at_a_time_and_of_who_is_down_already() -> None:
    crashes = Crash(1, at_s=0.01, down_s=5.0), Crash(1, at_s=0.5), Crash(1, at_s=2.0)
    world = world_of(ring(3, 2), 1, *crashes)
    world.run_to_end()
    assert world.processes[1].incarnation == 2


def processes(*gone: Peer) -> dict[Peer, Process]:
    found = {peer: Process(peer, Identity(bytes(32)), RunKey(bytes(32))) for peer in (BOOTSTRAP, CURATOR, 0, 1, 2)}
    for peer in gone:
        found[peer].stop(Crash(peer, down_s=None))
    return found


def test_a_blocked_ring_names_who_is_gone_and_what_helps() -> None:
    text = why_not(processes(1), [], 1, None, "a ring cannot go round")
    assert text == "the run is blocked: 1 is gone, and a ring cannot go round; it goes on when 1 is back"


def test_where_it_is_a_role_no_ring_is_mentioned() -> None:
    text = why_not(processes(CURATOR), [], CURATOR, None, "a ring cannot go round")
    assert text == "the run is blocked: curator is gone; it goes on when curator is back"


def test_a_standstill_names_all_who_are_gone_but_not_who_is_out() -> None:
    text = why_not(processes(BOOTSTRAP, 0, 2), [2], None, None, "")
    assert text == "the run came to a standstill; gone: bootstrap, 0"
    assert why_not(processes(), [], 1, None, "") == "the run came to a standstill; gone: nobody"
