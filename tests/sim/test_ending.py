from __future__ import annotations

from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.crypto.identity import Identity, RunKey
from p2pdp.sim.ending import why_not
from p2pdp.sim.faults import Crash
from p2pdp.sim.process import Process


def processes(*gone: Peer) -> dict[Peer, Process]:
    found = {peer: Process(peer, Identity(bytes(32)), RunKey(bytes(32))) for peer in (BOOTSTRAP, CURATOR, 0, 1, 2)}
    for peer in gone:
        found[peer].stop(Crash(peer, down_s=None))
    return found


def test_a_blocked_ring_names_who_is_gone_and_what_helps() -> None:
    text = why_not(processes(1), [], 1, None, False)
    assert text == "the run is blocked: 1 is gone, and a ring cannot go round; it goes on when 1 is back"


def test_where_it_is_a_role_no_ring_is_mentioned() -> None:
    text = why_not(processes(CURATOR), [], CURATOR, None, True)
    assert text == "the run is blocked: curator is gone; it goes on when curator is back"


def test_a_standstill_names_all_who_are_gone_but_not_who_is_out() -> None:
    text = why_not(processes(BOOTSTRAP, 0, 2), [2], None, None, True)
    assert text == "the run came to a standstill; gone: bootstrap, 0"
    assert why_not(processes(), [], 1, None, True) == "the run came to a standstill; gone: nobody"
