"""What the curator holds of a run whose users hand in sealed reports, and whether all of it is there.

A report is known by the name that its user drew for it: a second one of the same name is a fault and is not counted.
When somebody is put out, reports that it held may come once more from whoever had passed them to it; bootstrap says
which (`RESOLVED`), and until it has, and they are here, the result waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from p2pdp.core.ids import Peer
from p2pdp.core.step import Fault, Message

Open = Callable[[int, bytes], Any]  # name, sealed report -> the report, or None if it is none of this run


class Reports:
    def __init__(self, open_report: Open, *, waits_for_lost: bool) -> None:
        """Of several reports that a user holds at the end of `single` most are dropped, so none is waited for."""
        self._open = open_report
        self._waits = waits_for_lost
        self._held: dict[int, tuple[Peer, int, Any]] = {}  # name -> sender, step, report
        self._unresolved: set[Peer] = set()
        self._expected: dict[int, Peer] = {}

    def take(self, sender: Peer, message: Message) -> Fault | None:
        name, step = message.fields
        if name in self._held:
            return Fault("doubled_report", sender)
        report = self._open(name, message.value)
        if report is None:
            return Fault("bad_report", sender)
        self._held[name] = sender, step, report
        self._expected.pop(name, None)
        return None

    def out(self, peer: Peer) -> None:
        self._unresolved.add(peer)
        self._expected = {name: sender for name, sender in self._expected.items() if sender != peer}

    def resolved(self, peers: Sequence[Peer], lost: Sequence[Sequence[int]]) -> None:
        self._unresolved.difference_update(peers)
        if self._waits:
            self._expected.update({name: sender for name, sender in lost if name not in self._held})

    @property
    def complete(self) -> bool:
        return not self._unresolved and not self._expected

    def report(self, name: int) -> Any:
        return self._held[name][2]

    def receipts_from(self, peer: Peer) -> list[list[int]]:
        return sorted([name, step] for name, (sender, step, _) in self._held.items() if sender == peer)

    def values(self) -> list[Any]:
        """In the order of their names, which says nothing."""
        return [report for _, (_, _, report) in sorted(self._held.items())]
