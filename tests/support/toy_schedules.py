"""Whatever may happen to toy hosts and to the frames between them, by numbers or by names."""

from __future__ import annotations

from tests.support.toys import Toys


def chance(toys: Toys, chances: list[int]) -> None:
    """What numbers stand for: frames arrive, mostly in order, twice, late or not at all, and time passes."""
    for number in chances:
        toys.now_s += number % 5 * 0.1
        what, which = number % 11, number // 11
        peer = which % toys.n
        if what == 0 and any(at_s is not None for at_s in toys.wake_at_s.values()):
            toys.next_wake()
        elif what == 1 and toys.flight:
            toys.give(*toys.flight[which % len(toys.flight)])
        elif what == 2 and toys.flight:
            toys.flight.pop(which % len(toys.flight))
        elif what == 3:
            toys.carry(peer, toys.hosts[peer].connected((which + 1) % toys.n, toys.now_s))
        elif what == 4:
            toys.carry(peer, toys.hosts[peer].idle(toys.now_s))
        elif toys.flight:
            toys.deliver(0 if what < 9 else which % len(toys.flight))


ACTIONS = ("boot", "stop within a write", "stop", "idle", "connect", "wake", "repeat", "lose", *["deliver"] * 6)


def happen(toys: Toys, action: str, peer: int, pick: int) -> None:
    """One thing that a network or a machine may do; what cannot happen now, does not."""
    up = peer in toys.hosts
    if action == "boot" and not up:
        toys.boot(peer)
    elif action == "stop within a write" and up:
        toys.stop_at[peer] = len(toys.marks[peer]) + 1 + pick % 4
    elif action == "stop" and up:
        toys.kill(peer)
    elif action == "idle" and up:
        toys.carry(peer, toys.hosts[peer].idle(toys.now_s))
    elif action == "connect" and up:
        toys.carry(peer, toys.hosts[peer].connected((peer + 1) % toys.n, toys.now_s))
    elif action == "wake" and any(at_s is not None for at_s in toys.wake_at_s.values()):
        toys.next_wake()
    elif toys.flight:
        receiver, frame = toys.flight[pick % len(toys.flight)]
        if action != "repeat":
            toys.flight.pop(pick % len(toys.flight))
        if action != "lose":
            toys.give(receiver, frame)


def come_back(toys: Toys) -> None:
    """All hosts that stopped begin again, and nothing stops them any more."""
    toys.stop_at.clear()
    for peer in toys.make:
        if peer not in toys.hosts:
            toys.boot(peer)
    toys.run(toys.now_s + 60.0)
