"""The interfaces between a node, its shell and a transport, and the interface of a kind of transport.

A frame comes from an *origin*: a connection, a topic, whatever an answer can be sent back through. Who a
frame claims to be from proves nothing, so a transport uses an origin for a peer only after the shell has
said so (`belongs`), which it does when a frame from there proved authentic.

A `TransportKind` is what `[run] transport` names. A process asks it for a `Network`, attaches a shell to the network
for each of its peers, and gets a `Transport` for each. Nothing outside this room knows a kind by its name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Protocol, runtime_checkable

from p2pdp.core.addresses import Address, Place
from p2pdp.core.errors import UsageError
from p2pdp.core.ids import Peer
from p2pdp.core.spec import Spec, TransportPart

ROLES: Final = -1  # the slot of bootstrap and curator in a local run, where users have slots from 0

Origin = Hashable
Say = Callable[[str], None]  # tells a person what a node waits for
Where = Callable[[Peer], Place | None]  # None while nobody knows


class Shell(Protocol):
    """The callbacks of a transport, always from its event loop and never while it is being called.

    None of these may raise: an event loop would report it and go on.
    """

    def arrived(self, origin: Origin, frame: bytes) -> None: ...

    def lost(self, peer: Peer) -> None:
        """Hear that the connection to the peer broke, and that frames may be lost with it.

        For a role this comes within seconds of its return, even if nobody sends: it does not know where users are.
        """

    def connected(self, peer: Peer) -> None:
        """Hear that there is a connection to the peer again, after one was lost."""

    def fail(self, error: BaseException) -> None:
        """Hear that there will be no connections any more, for a reason that a person has to mend."""


class Transport(Protocol):
    """Frames may be lost, doubled and reordered where a connection breaks; the link above repairs that."""

    @property
    def strangers(self) -> Collection[Origin]:
        """Return the origins that belong to nobody yet, which are those that `belongs` is for."""

    def send(self, peer: Peer, frame: bytes) -> None:
        """Send when there is a connection; drop what a bounded queue cannot hold."""

    def answer(self, origin: Origin, frame: bytes) -> None:
        """Send back to where a frame came from; drop it where that is no more."""

    def belongs(self, origin: Origin, peer: Peer) -> None:
        """Use the origin for frames to this peer, who proved to be there. To be called while a frame arrives.

        An authentic frame alone is no proof: it may have been recorded and repeated by somebody else.
        """

    async def close(self) -> None:
        """End every connection after what was written has left; the shell hears of nothing from then on."""


@runtime_checkable
class SendsTogether(Protocol):
    """An optional capability of a transport: frames for one peer leave together."""

    def send_together(self, peer: Peer, frames: Sequence[bytes]) -> None:
        """Do as `send` for each, in order."""


class Network(Protocol):
    """The connection of the peers of one process to others. It is used once: `close` is final.

    Guarantee: nothing arrives before `listen`. Peers that one network serves reach each other through it, whatever
    `where` says of them. After `close` nobody is called in any more; each transport ends by its own `close`.

    The caller owes: `serve` is told of a peer once its number is known, and only with a transport of this network.
    """

    @property
    def faults(self) -> Mapping[str, int]:
        """Return counts of faults of strangers, which no host hears of, by kind."""

    def place(self, text: str) -> Place | None:
        """Read where a peer of another machine says that it is; None for what is no place here."""

    def attach(self, shell: Shell, where: Where) -> Transport:
        """Return a transport for one shell; to be asked for within a running event loop."""

    def serve(self, peer: Peer, transport: Transport) -> None:
        """Lead calls for this peer to this transport from now on."""

    async def listen(self) -> None:
        """Take callers from now on."""

    def close(self) -> None:
        """Take no further callers."""


# Local runs


@dataclass(frozen=True)
class LocalProcess:
    """The part of a local run that a launcher gives to one process, as seen by its transport.

    `users` are those in the process; bootstrap and curator may be in it too. For a kind that `opens_sockets`,
    `listening` holds the descriptor of the process's socket by its first slot, and `addresses` where all processes
    listen, likewise. Of users `together` share a process, by their slots. `provided` is what `provide` made known.
    """

    spec: Spec
    run_id: bytes
    users: Collection[int]
    listening: Mapping[int, int] = field(default_factory=dict)
    addresses: Mapping[int, Address] = field(default_factory=dict)
    provided: Mapping[str, Any] | None = field(default=None, repr=False)
    together: int = 1


@dataclass(frozen=True)
class LocalNetworks:
    """The networks of a process in a local run: one for each slot that it holds, and where every slot is."""

    network: Callable[[int], Network]
    where: Callable[[int], Place | None]


class Provision(Protocol):
    """A service that a launcher keeps running for a local run, such as a broker."""

    @property
    def known(self) -> Mapping[str, Any]:
        """Return the facts that processes have to know, as JSON can hold them."""

    def check(self) -> None:
        """Raise `NotReady` if it ended."""


# Runs across machines


@dataclass(frozen=True)
class Listening:
    """The address at which bootstrap listens, and the one in its tokens, where that is another."""

    listen: str | None
    address: str | None = None


@dataclass(frozen=True)
class RolesEndpoint:
    """The endpoint of bootstrap: tokens name `address`, and a second start listens on `listen`.

    `description` is for a person.
    """

    network: Network
    address: str
    listen: str
    description: str


@dataclass(frozen=True)
class NodeSettings:
    """The part of a node's configuration about how it is reached; `source` is its file, for errors."""

    source: str
    token: int
    bootstrap: str  # the address in the token
    listen: Address | None
    address: str | None
    part: TransportPart


@dataclass(frozen=True)
class NodeEndpoint:
    """The endpoint of a node. `bootstrap` is the place of bootstrap in its token.

    `own_address` returns what others are to be told of this node, None while nobody could reach it.
    """

    network: Network
    bootstrap: Place
    own_address: Callable[[], Awaitable[str | None]]


class TransportKind(ABC):
    """A transport that a spec can choose: what it needs, and how its networks are made."""

    name: ClassVar[str]
    keys: ClassVar[frozenset[str]] = frozenset()  # of the section [transport]
    has_broker: ClassVar[bool] = False  # somebody who carries every message, and is an observer of its own
    in_one_process: ClassVar[bool] = False  # all peers of a local run
    opens_sockets: ClassVar[bool] = False  # a listening TCP socket for each process, before any of them starts
    schemes: ClassVar[tuple[str, ...]] = ()  # what addresses in join tokens begin with, before `://`; "" for none

    @property
    def crosses_machines(self) -> bool:
        return bool(self.schemes)

    def check(self, spec: Spec) -> None:  # noqa: B027  (most have nothing to check)
        """Raise `UsageError` where `[transport]` makes no sense in a local run, or a file it names cannot be read."""

    def provide(self, spec: Spec) -> AbstractContextManager[Provision | None]:
        """Return what a local run needs besides its processes, for the time of the run."""
        return nullcontext()

    @abstractmethod
    def local(self, process: LocalProcess) -> LocalNetworks:
        """Return the networks of a process in a local run."""

    # A kind without `schemes` is never asked for these.

    def check_listening(self, spec: Spec, listening: Listening) -> None:
        """Raise `UsageError` where nobody could reach bootstrap, before anything is written."""
        raise self._stays_here()

    def listening_again(self, listen: str, address: str) -> Listening:
        """Return the options of a bootstrap that had this endpoint."""
        raise self._stays_here()

    def roles_endpoint(
        self, spec: Spec, run_id: bytes, listening: Listening, before: str | None, say: Say
    ) -> AbstractContextManager[RolesEndpoint]:
        """Open the endpoint of bootstrap and curator; `before` is `listen` of the endpoint of an earlier start."""
        raise self._stays_here()

    def check_bootstrap(self, address: str) -> None:
        """Raise `AddressError` for an address that no token of this kind has."""
        raise self._stays_here()

    def check_node(self, given: Collection[str]) -> None:
        """Raise `UsageError` for keys of `[node]` that are missing or of no use."""
        raise self._stays_here()

    def node_endpoint(self, settings: NodeSettings, say: Say) -> AbstractContextManager[NodeEndpoint]:
        """Open the endpoint of a node."""
        raise self._stays_here()

    def _stays_here(self) -> UsageError:
        return UsageError(f"[run] transport: {self.name} does not reach other machines; choose another")
