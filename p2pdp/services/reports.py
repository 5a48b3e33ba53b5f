"""What the curator holds of a run whose users hand in sealed reports, and whether all of it is there.

A report is known by the name inside its seal, which its user drew: a second one of the same name is not counted. When
somebody is put out, reports that it held may come once more from whoever had passed them to it; bootstrap says how
many orders to do so it gave to whom (`RESOLVED`), and until it has, and each was heeded, the result waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from p2pdp.core.ids import Peer
from p2pdp.core.messages import EndedReport
from p2pdp.core.step import Fault, Message

Open = Callable[[bytes], tuple[int, Any] | None]  # sealed report -> its name and itself; None if it is none of this run


class Reports:
    def __init__(self, open_report: Open) -> None:
        self._open = open_report
        self._held: dict[int, Any] = {}  # name -> report
        self._came: dict[Peer, list[tuple[int, int]]] = {}  # sender -> by which hop, and at which step
        self._unresolved: set[Peer] = set()
        self._out: set[Peer] = set()
        self._orders: Counter[Peer] = Counter()  # that were not heeded yet; less than none where it was heeded before

    def take(self, sender: Peer, message: Message) -> int | Fault | None:
        """Return the name of a new report; None for one that came before and was sent again after an exclusion."""
        hop, step = EndedReport(*message.fields)
        found = self._open(message.value)
        if found is None:
            return Fault("bad_report", sender)
        self._came.setdefault(sender, []).append((hop, step))
        name, report = found
        if name in self._held:
            return None if self._out else Fault("doubled_report", sender)
        self._held[name] = report
        return name

    def out(self, peer: Peer) -> None:
        self._out.add(peer)
        self._unresolved.add(peer)

    def resolved(self, peers: Sequence[Peer], orders: Sequence[Sequence[int]]) -> None:
        self._unresolved.difference_update(peers)
        self._orders.update(dict(map(tuple, orders)))  # type: ignore[arg-type]

    def heeded(self, peer: Peer) -> None:
        self._orders[peer] -= 1

    @property
    def complete(self) -> bool:
        return not self._unresolved and not any(
            count > 0 for peer, count in self._orders.items() if peer not in self._out
        )

    def report(self, name: int) -> Any:
        return self._held[name]

    def receipts_from(self, peer: Peer) -> list[list[int]]:
        return sorted([hop, hop, step] for hop, step in self._came.get(peer, []))

    def values(self) -> list[Any]:
        """Return the reports in the order of their names, which is independent of who sent them."""
        return [report for _, report in sorted(self._held.items())]
