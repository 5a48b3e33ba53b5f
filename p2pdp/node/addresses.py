"""A node whose peers are on other machines: announces its address, and learns its neighbours' from bootstrap.

It announces once it is enrolled, when its connection to bootstrap is lost or restored, and every `ASK_S` while it lacks
the address of a neighbour. The counter of a statement rises only with a new address. It begins with the time, so that a
node that comes back at another place is newer than it was before. If the clock has gone back meanwhile, bootstrap
answers with the statement it has, and the node continues above that.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from p2pdp.core.ids import is_user
from p2pdp.crypto.addresses import COUNTER_MAX, Statement, sign_statement, statement_frame
from p2pdp.peer.credentials import Credentials
from p2pdp.services.addresses import AddressBook, News

ASK_S: Final = 3.0
GIVE_UP_S: Final = 60.0


@dataclass(frozen=True)
class RemotePeersSettings:
    """Extra settings of a node whose peers run on other machines.

    `own_address` returns what others are to be told, None while nobody could reach the node. `admit` gets the
    credentials before bootstrap is told that the node is ready, and may raise. `say` gets a text on whom the node waits
    for. A node whose ledger is closed tries for `give_up_s` to hand in its head.
    """

    own_address: Callable[[], Awaitable[str | None]]
    admit: Callable[[Credentials], None]
    say: Callable[[str], None]
    give_up_s: float = GIVE_UP_S


class AddressExchange:
    """Make it within a running event loop."""

    def __init__(
        self, credentials: Credentials, own_address: Callable[[], Awaitable[str | None]], send: Callable[[bytes], None]
    ) -> None:
        self._credentials = credentials
        self._own_address = own_address
        self._send = send
        self._book = AddressBook(credentials.roster)
        self._neighbours = [peer for peer in credentials.peers() if is_user(peer)]
        self._said: Statement | None = None
        self._counter = time.time_ns()
        self._again = asyncio.Event()
        self.where = self._book.where

    @property
    def faults(self) -> Counter[str]:
        return self._book.faults

    async def announce(self) -> None:
        """Announce for ever; to be cancelled with the node."""
        while True:
            self._again.clear()
            self.state(await self._own_address())
            waiting = self._said is None or self._book.lacks(self._neighbours)
            try:
                async with asyncio.timeout(ASK_S if waiting else None):
                    await self._again.wait()
            except TimeoutError:
                continue

    def state(self, address: str | None) -> None:
        if address is None:
            return
        if self._said is not None and self._said.address != address:
            self._counter += 1
        if self._said is None or self._said.counter != self._counter:
            credentials = self._credentials
            self._said = sign_statement(
                credentials.identity, credentials.roster.run_id, credentials.me, self._counter, address
            )
        self._send(statement_frame(self._said))

    def again(self) -> None:
        """Announce again: the connection to bootstrap was lost or restored."""
        self._again.set()

    def hear(self, frame: bytes) -> None:
        taken = self._book.take(frame)
        if taken is None:
            return
        statement, news = taken
        if statement.user == self._credentials.me and news is News.NEWER and statement.counter >= self._counter:
            self._counter = min(statement.counter + 1, COUNTER_MAX)
            self._again.set()
