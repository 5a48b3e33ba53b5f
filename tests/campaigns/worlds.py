"""Simulated worlds with liars in them and the oracle of the wire on all wires, which notice if nothing goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from p2pdp.core.errors import RunFailed
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.crypto.channel import Channel
from p2pdp.ledger.journal import VIEW
from p2pdp.peer.credentials import Credentials
from p2pdp.peer.effects import Effects
from p2pdp.peer.host import Host
from p2pdp.peer.standstill import GAPS_MIN
from p2pdp.peer.watch import STRETCH_MAX
from p2pdp.services.stops import LONG
from p2pdp.sim.faults import Crash, Faults, Harm
from p2pdp.sim.process import Process
from p2pdp.sim.world import World
from tests.campaigns.lying import Behaviour, Liar
from tests.campaigns.oracle import Channels, WireOracle
from tests.campaigns.specs import prepared

# Within so many a run has to go on or to end: who is gone is silent after (1 + STRETCH_MAX) / 2 and two looks at most
# (`peer/watch.py`), and then has one to answer a probe (`services/bootstrap.py`): three in all.
PATIENCES: Final = (1.0 + STRETCH_MAX) / 2 + 0.25 + 1.0
LOOKS: Final = 4.0  # patiences until a standstill is noticed and acted on, beside how long it has to last
LOSSY_PATIENCES: Final = 8.0  # where frames get lost
_ACT: Final = 9  # a kind of event: liars do what they want
_FRAME: Final = 0
ENROL_S: Final = 60.0
LIED_MAX: Final = 5000  # frames of liars; what they send beyond that gets lost
FRAMES_MAX: Final = 20_000  # between honest peers; runs have some hundreds
QUIET_FRAMES: Final = 100  # in a patience: signs of life, as long as a run stands still
TAILS: Final = (Harm.ZEROS, Harm.GARBAGE)  # behind the end, which restarts cut off


class Hung(Exception):
    """A run that neither ended nor went on."""


class Storm(Exception):
    """A run that is busy without end."""


class LyingWorld(World):
    """`liars` maps users to what they do; `quiet_s` is when the last planned disturbance is over."""

    def __init__(
        self, text: str, seed: int, faults: Faults, liars: Mapping[Peer, Sequence[Behaviour]], quiet_s: float = 0.0
    ) -> None:
        made = prepared(text)
        super().__init__(made.run, made.data.user, text, made.digest, seed, faults)
        self.text = text
        self.patience_s = made.spec.run.patience_s
        self.liars = {
            user: Liar(user, made.run, behaviours, Random(f"{seed}/{user}"))  # noqa: S311 - schedules are no secret
            for user, behaviours in liars.items()
        }
        if len(self.liars) == 2:
            one, other = self.liars.values()
            one.memory["partner"], other.memory["partner"] = other.me, one.me
        self.channels = Channels(self._channel)
        self.oracle = WireOracle(made.run.protocol.messages, self.channels, self.liars, self._took)
        self.broken: list[str] = []  # liars whose own host failed
        self.damaged: dict[Peer, tuple[bytes, bytes]] = {}  # disks as they were before they were rolled back or changed
        self._quiet_s = quiet_s
        self.hidden = made.spec.run.protocol.startswith("walk.")  # nobody may say whom it waits for
        self._between_honest = self._lied = 0
        self._patiences = LOSSY_PATIENCES if faults.loss else PATIENCES
        self._looks = LOOKS
        if len(liars) > max(1, made.run.n // 4):  # as many may keep silent about what they keep (`services/stops.py`)
            self._looks += LONG
        forget = any(crash.rolled_back_to is not None or crash.disk is not None for crash in faults.crashes)
        if liars or forget:  # then a run may stand still, which is noticed within a stated time (`peer/standstill.py`)
            self._patiences = max(self._patiences, 2 * made.run.n + self._looks)
        self._due_s = ENROL_S  # applications have waits of their own
        for user in self.liars:
            self.processes[user].wire = []  # no fast path, which no lie could get into
            self._schedule(self.patience_s / 50, _ACT, user, None)

    def _channel(self, sender: Peer, receiver: Peer) -> Channel:
        credentials = self.processes[receiver].credentials or self._credentials_of(receiver)
        return credentials.channel(sender)

    def _credentials_of(self, peer: Peer) -> Credentials:
        """Return the credentials of somebody who has not taken its seat in its own life yet."""
        process = self.processes[peer]
        return Credentials(peer, self.roster, process.identity, process.run_key, None)

    def _next_due_s(self) -> float:
        waits_s = self._patiences * self.patience_s
        if self.liars and self.hidden:  # so much quiet is needed where visits are rare
            waits_s = max(waits_s, (GAPS_MIN + self.run.n) * self.now_s + self._looks * self.patience_s)
        return max(self.now_s, self._quiet_s) + waits_s

    # What happens

    def _happen(self, kind: int, process: Process, content: Any) -> None:
        if self.now_s > self._due_s:
            raise Hung(f"nothing went on for {self._patiences:.2f} times the patience at {self.now_s:.1f} s")
        if self._between_honest > FRAMES_MAX + QUIET_FRAMES * self.now_s / self.patience_s:
            raise Storm(f"{self._between_honest} frames between honest peers by {self.now_s:.1f} s")
        liar = self.liars.get(process.peer)
        if liar is None:
            super()._happen(kind, process, content)
            return
        try:
            self._lie(liar, kind, process, content)
        except (RunFailed, Hung):
            raise
        except Exception as error:  # noqa: BLE001 - whatever its lies did to its own node, it is its own
            self.broken.append(type(error).__name__)
            process.fail()

    def _lie(self, liar: Liar, kind: int, process: Process, content: Any) -> None:
        liar.now_s = self.now_s
        if kind == _ACT:
            self._schedule(self.now_s + self.patience_s / 10, _ACT, process.peer, None)
        elif kind == _FRAME and process.host is not None and not liar.hears(*content):
            return
        else:
            super()._happen(kind, process, content)
        if process.host is None or not process.up:
            return
        if kind == _ACT or liar.memory.get("late"):
            liar.act()
        elif kind == _FRAME and liar.frames_left > 0 and liar.dice.random() < 0.4:
            liar.frames_left -= 1
            liar.act()
        self._carry_out(process, process.host._effects(self.now_s))

    def _host_of(self, process: Process, credentials: Credentials) -> Host:
        host = super()._host_of(process, credentials)
        liar = self.liars.get(process.peer)
        if liar is not None:
            liar.now_s = self.now_s
            liar.inhabits(host)
        return host

    def _transmit(self, sender: Peer, receiver: Peer, frame: bytes) -> None:
        self._between_honest += sender not in self.liars and receiver not in self.liars
        if sender in self.liars:
            self._lied += 1
            if self._lied > LIED_MAX:
                return
        if frame[1] == 1 and self.oracle.sent(sender, receiver, frame):
            self._due_s = self._next_due_s() if self.oracle.begun else max(self._due_s, self._next_due_s())
        super()._transmit(sender, receiver, frame)

    def _carry_out(self, process: Process, effects: Effects) -> None:
        progress = len(self.out), self.blocked
        super()._carry_out(process, effects)
        if progress != (len(self.out), self.blocked):
            self._due_s = self._next_due_s()

    def _took(self, receiver: Peer, sender: Peer) -> int:
        host = self.processes[receiver].host
        return 2**32 if host is None else host._peers.link(sender).received  # who is down may remember it

    def _crash(self, process: Process, crash: Crash) -> None:
        disk = process.disk
        rolled_back = crash.rolled_back_to is not None and crash.rolled_back_to < disk.view_records
        if process.up and (rolled_back or (crash.disk is not None and crash.disk.harm not in TAILS)):
            self.damaged[process.peer] = bytes(disk.view), bytes(disk.private)
            self.oracle.set_back.add(process.peer)
        super()._crash(process, crash)
        self._due_s = max(self._due_s, self.now_s + (crash.down_s or 0.0) + self._patiences * self.patience_s)

    def _finished(self) -> bool:
        """Return whether all honest peers are done: whether a liar is, it alone knows."""
        curator = self.processes[CURATOR].host
        if curator is None or not curator.done:
            return False
        honest = (self.processes[peer] for peer in self.honest)
        return not any(
            process.returns if process.host is None else not (process.host.done or process.host.stopped)
            for process in honest
        )

    # What is left

    @property
    def honest(self) -> list[Peer]:
        return [peer for peer in self.processes if peer not in self.liars]

    @property
    def roles_stopped(self) -> bool:
        hosts = (self.processes[role].host for role in (BOOTSTRAP, CURATOR))
        return any(host is not None and host.stopped for host in hosts)

    def ledger(self, peer: Peer, name: str = VIEW) -> bytes:
        disk = self.processes[peer].disk
        return bytes(disk.view if name == VIEW else disk.private)
