"""The participants of a run, their keys, and the public facts of the run, signed by bootstrap.

What is signed is short: the number of users, and the root of a Merkle tree (`crypto/tree.py`) whose leaves are their
entries. So a node needs entries and proofs of those only whom it talks to: `part` makes such a roster. It has the same
digest and signature as the whole one, which bootstrap, curator and the folder of a run have.

Guarantee: a roster has one encoding for the users whose entries it holds. `from_bytes` and `from_json` refuse every
other, so a digest names one roster and a round trip through either form keeps digest and signature. All entries of a
roster are leaves of the tree that it names. After `check` the roster is what this bootstrap signed.
`entry` returns an entry only after its own signature is verified: the node's identity signed the key of this run, so
not even bootstrap can replace it with a key of its own. It is verified when first asked for, since a node talks to few
of the others.

The caller owes: `check` with the key of the join token before anything of a roster is believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import pairwise
from types import NoneType
from typing import Any, Final, overload

from nacl.bindings import crypto_scalarmult
from nacl.exceptions import CryptoError

from p2pdp.core.errors import VerificationFailed
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user, peer_name
from p2pdp.core.rows import ROWS_BYTES, Rows, rows_in
from p2pdp.crypto.facts import Fact, problem_of
from p2pdp.crypto.identity import KEY_BYTES, SIGNATURE_BYTES, Identity, sign_labelled, verify_labelled
from p2pdp.crypto.tree import HASH_BYTES, Tree, TreeError, root_of
from p2pdp.wire.codec import CodecError, pack, unpack

ROSTER_VERSION: Final = 2
ENTRY_BYTES: Final = 2 * KEY_BYTES + SIGNATURE_BYTES
RUN_ID_BYTES: Final = 16
DIGEST_BYTES: Final = 32

_ENTRY_LABEL: Final = "p2pdp roster entry"
_ROSTER_LABEL: Final = "p2pdp roster"
_UNSIGNED: Final = bytes(SIGNATURE_BYTES)
_ANY_SCALAR: Final = bytes(31) + b"\x40"


class RosterError(VerificationFailed):
    """A roster, or an entry of one, that is malformed, altered or of another peer."""


@dataclass(frozen=True, slots=True)
class RosterEntry:
    """One peer: its identity, its key in this run, and its identity's signature over that key.

    Where the unit is a record, a user's entry states how many `rows` the user has, which is signed with the key.
    """

    identity: bytes
    box: bytes
    signature: bytes
    rows: int | None = None

    def __repr__(self) -> str:
        return f"RosterEntry({self.identity.hex()})"

    def to_bytes(self) -> bytes:
        return self.identity + self.box + self.signature + _rows_bytes(self.rows)

    @classmethod
    def from_bytes(cls, data: bytes) -> RosterEntry:
        if len(data) not in (ENTRY_BYTES, ENTRY_BYTES + ROWS_BYTES):
            raise RosterError(f"a roster entry has {ENTRY_BYTES} bytes, or {ROWS_BYTES} more, not {len(data)}")
        rows = int.from_bytes(data[ENTRY_BYTES:], "big") if len(data) > ENTRY_BYTES else None
        return cls(data[:KEY_BYTES], data[KEY_BYTES : 2 * KEY_BYTES], data[2 * KEY_BYTES : ENTRY_BYTES], rows)

    def is_valid(self, run_id: bytes) -> bool:
        """Tell whether the identity signed this key for this run, and whether the key is of any use."""
        try:  # a few public keys give the same secret with every private one
            crypto_scalarmult(_ANY_SCALAR, self.box)
        except CryptoError:
            return False
        return self.is_signed(run_id)

    def is_signed(self, run_id: bytes) -> bool:
        """Check the signature only; agreeing on a secret with this key checks the key itself."""
        return verify_labelled(self.identity, self.signature, _ENTRY_LABEL, run_id, self.box, *_stated(self.rows))


def sign_entry(identity: Identity, run_id: bytes, box: bytes, rows: int | None = None) -> RosterEntry:
    """Make the entry that a node enrols with; `rows` where the unit of the run is a record."""
    return RosterEntry(identity.public, box, sign_labelled(identity, _ENTRY_LABEL, run_id, box, *_stated(rows)), rows)


def _rows_bytes(rows: int | None) -> bytes:
    return b"" if rows is None else rows.to_bytes(ROWS_BYTES, "big")


def _stated(rows: int | None) -> tuple[bytes, ...]:
    """Return what is signed of a number of rows."""
    return () if rows is None else (_rows_bytes(rows),)


@dataclass(frozen=True, slots=True, repr=False)
class Entries(Sequence[RosterEntry]):
    """Entries of users, taken out of one byte string as they are asked for, each with its number of rows.

    They are those of `users`, in that order, and everybody's where that is None; `rows` has everybody's numbers.
    """

    flat: bytes
    rows: Rows | None = None
    users: tuple[Peer, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse a piece of an entry, and numbers of rows that are not those of the users."""
        if len(self.flat) % ENTRY_BYTES:
            raise RosterError(f"the roster's entries have {len(self.flat)} bytes, no multiple of {ENTRY_BYTES}")
        if self.users is not None and (len(self.users) != len(self) or not _ascending(self.users)):
            raise RosterError("the roster does not say whose entries it holds, each once and in order")
        if self.rows is not None and len(self.rows) <= max(self.named, default=-1):
            raise RosterError(f"the roster says of {len(self.rows)} users how many rows they have, and has more")

    def __repr__(self) -> str:
        return f"Entries({len(self)})"

    def __len__(self) -> int:
        return len(self.flat) // ENTRY_BYTES

    @overload
    def __getitem__(self, index: int) -> RosterEntry: ...

    @overload
    def __getitem__(self, index: slice) -> list[RosterEntry]: ...

    def __getitem__(self, index: int | slice) -> RosterEntry | list[RosterEntry]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"a roster of {len(self)} has no entry {index}")
        place = index % len(self)
        found = RosterEntry.from_bytes(self.flat[place * ENTRY_BYTES : (place + 1) * ENTRY_BYTES])
        return found if self.rows is None else replace(found, rows=self.rows[self.named[place]])

    @property
    def named(self) -> Sequence[Peer]:
        """Return the users whose entries these are, in their order."""
        return range(len(self)) if self.users is None else self.users

    def leaves(self) -> Iterator[bytes]:
        return (entry.to_bytes() for entry in self)


@dataclass(frozen=True, slots=True)
class Roster:
    """The participants of a run. Made by `sign_roster`, `part`, `from_bytes` and `from_json`.

    `root` is that of the tree of all `n` entries, and `proof` what shows that those held here are in it.
    """

    version: int
    run_id: bytes
    spec_digest: bytes
    protocol: str
    facts: tuple[tuple[str, Fact], ...]
    bootstrap: RosterEntry
    curator: RosterEntry
    n: int
    root: bytes
    entries: Entries
    proof: bytes
    signature: bytes
    body: bytes = field(init=False, repr=False, compare=False)  # what is signed
    digest: bytes = field(init=False, repr=False, compare=False)
    _valid: set[Peer] = field(init=False, repr=False, compare=False, default_factory=set)
    _trees: list[Tree] = field(init=False, repr=False, compare=False, default_factory=list)

    def __post_init__(self) -> None:
        """Check what has one right form, and fix the digest of the signed bytes."""
        lengths = (len(self.run_id), len(self.spec_digest), len(self.signature), len(self.root))
        _check_version(self.version)
        wanted = (RUN_ID_BYTES, DIGEST_BYTES, SIGNATURE_BYTES, HASH_BYTES)
        if lengths != wanted or (type(self.protocol), type(self.n)) != (str, int):
            raise RosterError("the roster's run id, digests, signature, protocol or size has a wrong length or type")
        if (problem := problem_of(self.facts)) is not None:
            raise RosterError(problem)
        if self.entries.rows != _rows_in(self.facts) or (self.bootstrap.rows, self.curator.rows) != (None, None):
            raise RosterError("the roster's entries do not state the numbers of rows that are signed")
        if len(self.entries.rows or ()) not in (0, self.n):
            raise RosterError(f"the roster has {self.n} users, and does not say of each how many rows it has")
        self._check_tree()
        parts = (self.version, self.run_id, self.spec_digest, self.protocol, self.facts)
        body = pack([*parts, self.bootstrap.to_bytes(), self.curator.to_bytes(), self.n, self.root])
        object.__setattr__(self, "body", body)
        object.__setattr__(self, "digest", blake2b(body, digest_size=DIGEST_BYTES).digest())

    def _check_tree(self) -> None:
        """Refuse entries that are not leaves of the tree, or more of a proof than it takes."""
        whole = self.entries.users is None
        try:
            leaves = {} if whole else dict(zip(self.entries.named, self.entries.leaves(), strict=True))
            root = Tree(self.entries.leaves()).root if whole else root_of(self.n, leaves, self.proof)
        except TreeError as error:
            raise RosterError(f"the roster is malformed: {error}") from None
        if root != self.root or (whole and (self.proof or len(self.entries) != self.n)):
            raise RosterError("the roster's entries are not those of the root that is signed")
        if len(self.entries) == self.n and not whole:
            raise RosterError("the roster holds everybody's entries, and lists whose they are")

    def __repr__(self) -> str:
        return f"Roster({self.run_id.hex()}, {self.n} users)"

    def check(self, bootstrap_public: bytes) -> None:
        """Refuse a roster that is not signed by the holder of this key."""
        if self.bootstrap.identity != bootstrap_public:
            raise RosterError("the roster names another bootstrap than the join token does")
        if not verify_labelled(bootstrap_public, self.signature, _ROSTER_LABEL, self.body):
            raise RosterError("bootstrap's signature on the roster is not valid: the roster was altered")
        self._check_distinct()

    def part(self, users: Iterable[Peer]) -> bytes:
        """Return the bytes of the roster with the entries of these users only, from one with everybody's."""
        held = sorted(set(users))
        if len(held) == self.n:
            return self.to_bytes()
        if not self._trees:
            self._trees.append(Tree(self.entries.leaves()))
        flat = b"".join(self.entries.flat[user * ENTRY_BYTES : (user + 1) * ENTRY_BYTES] for user in held)
        return pack([self.body, self.signature, held, flat, self._trees[0].proof(held)])

    def _check_distinct(self) -> None:
        """Refuse a roster in which two peers are one, which claims against each of them leave out."""
        flat, roles = self.entries.flat, (self.bootstrap, self.curator)
        for what, first in (("identity", 0), ("run key", KEY_BYTES)):
            known = [entry.to_bytes()[first : first + KEY_BYTES] for entry in roles]
            known += [flat[at : at + KEY_BYTES] for at in range(first, len(flat), ENTRY_BYTES)]
            if len(set(known)) < len(known):
                twice = _first_twice((BOOTSTRAP, CURATOR, *self.entries.named), known)
                names = " and ".join(f"user {peer}" if is_user(peer) else str(peer_name(peer)) for peer in twice)
                raise RosterError(f"the roster gives {names} the same {what}: one party would count as two")

    def entry(self, peer: Peer) -> RosterEntry:
        """Return the entry of a user or a role, whose signature is valid."""
        entry = self.held(peer)
        if peer not in self._valid:
            if not entry.is_signed(self.run_id):
                raise RosterError(f"the roster's entry of {peer_name(peer)} has no valid signature for this run")
            self._valid.add(peer)
        return entry

    def held(self, peer: Peer) -> RosterEntry:
        """Return the entry of a user or a role as it stands here, whether it is signed or not."""
        if peer >= self.n or peer < CURATOR:
            raise RosterError(f"the roster has {self.n} users, and no user {peer}")
        if peer < 0:
            return self.bootstrap if peer == BOOTSTRAP else self.curator
        if peer not in self.entries.named:
            raise RosterError(f"the roster of this node has no entry of user {peer}, to whom it does not talk")
        return self.entries[self.entries.named.index(peer)]

    def to_bytes(self) -> bytes:
        users = None if self.entries.users is None else list(self.entries.users)
        return pack([self.body, self.signature, users, self.entries.flat, self.proof])

    @classmethod
    def from_bytes(cls, data: bytes) -> Roster:
        """Read what `to_bytes` wrote, and nothing else."""
        try:
            body, signature, *held = unpack(data)
            signed = unpack(body)
            _check_version(signed[0])
            users, flat, proof = _typed(held, (NoneType if held[0] is None else list, bytes, bytes))
            parts = _typed(signed, (int, bytes, bytes, str, list, bytes, bytes, int, bytes))
            version, run_id, spec_digest, protocol, pairs, bootstrap, curator, n, root = parts
            facts = tuple((name, value) for name, value in pairs)
            whose = None if users is None else tuple(_typed(users, (int,) * len(users)))
        except (CodecError, TypeError, ValueError, IndexError) as error:
            raise RosterError("the roster is malformed") from error
        roles = RosterEntry.from_bytes(bootstrap), RosterEntry.from_bytes(curator)
        entries = Entries(flat, _rows_in(facts), whose)
        names = version, run_id, spec_digest, protocol
        roster = cls(*names, facts, *roles, n, root, entries, proof, signature)
        if roster.to_bytes() != data:
            raise RosterError("the roster is not in the one encoding that rosters have")
        return roster

    def to_json(self) -> dict[str, Any]:
        """Return what `roster.json` holds: byte strings as hexadecimal text, entries in the users' order.

        In the folder of a node that has a part only, `users` says whose entries these are.
        """
        return {
            "version": self.version,
            "run_id": self.run_id.hex(),
            "spec_digest": self.spec_digest.hex(),
            "protocol": self.protocol,
            "facts": dict(self.facts),
            "bootstrap": _entry_to_json(self.bootstrap),
            "curator": _entry_to_json(self.curator),
            "n": self.n,
            "root": self.root.hex(),
            "entries": [_entry_to_json(entry) for entry in self.entries],
            "users": None if self.entries.users is None else list(self.entries.users),
            "proof": self.proof.hex(),
            "digest": self.digest.hex(),
            "signature": self.signature.hex(),
        }

    @classmethod
    def from_json(cls, document: object) -> Roster:
        """Read what `to_json` returned, and nothing else."""
        try:
            roster = _from_json(document)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise RosterError("the roster file is malformed: a key is missing or has a wrong type") from error
        if roster.to_json() != document:
            raise RosterError("the roster file does not agree with itself: its digest or another part was altered")
        return roster


def _rows_in(facts: Iterable[tuple[str, Fact]]) -> Rows | None:
    try:
        return rows_in(dict(facts))
    except ValueError as error:
        raise RosterError(f"the roster is malformed: {error}") from None


def _ascending(users: Sequence[Peer]) -> bool:
    return all(first < second for first, second in pairwise(users)) and bool(users) and users[0] >= 0


def _check_version(version: object) -> None:
    if version != ROSTER_VERSION or type(version) is not int:
        raise RosterError(f"the roster has format version {version}, and this program knows {ROSTER_VERSION} only")


def _first_twice(peers: Sequence[Peer], known: Sequence[bytes]) -> tuple[Peer, Peer]:
    """Return the first two of these peers with the same key."""
    places: dict[bytes, Peer] = {}
    for peer, key in zip(peers, known, strict=True):
        if key in places:
            return places[key], peer
        places[key] = peer
    raise ValueError("all keys differ")


def _typed(parts: object, kinds: tuple[type, ...]) -> list[Any]:
    if type(parts) is not list or tuple(map(type, parts)) != kinds:
        raise TypeError("a part is missing or has a wrong type")
    return parts


def _entry_to_json(entry: RosterEntry) -> dict[str, str]:
    return {"identity": entry.identity.hex(), "box": entry.box.hex(), "signature": entry.signature.hex()}


def _entry_from_json(document: Any) -> RosterEntry:
    return RosterEntry.from_bytes(b"".join(bytes.fromhex(document[part]) for part in ("identity", "box", "signature")))


def _from_json(document: Any) -> Roster:
    _check_version(document["version"])
    facts, users = tuple(sorted(document["facts"].items())), document["users"]
    flat = b"".join(_entry_from_json(entry).to_bytes() for entry in document["entries"])
    return Roster(
        version=document["version"],
        run_id=bytes.fromhex(document["run_id"]),
        spec_digest=bytes.fromhex(document["spec_digest"]),
        protocol=document["protocol"],
        facts=facts,
        bootstrap=_entry_from_json(document["bootstrap"]),
        curator=_entry_from_json(document["curator"]),
        n=document["n"],
        root=bytes.fromhex(document["root"]),
        entries=Entries(flat, _rows_in(facts), None if users is None else tuple(users)),
        proof=bytes.fromhex(document["proof"]),
        signature=bytes.fromhex(document["signature"]),
    )


def sign_roster(
    identity: Identity,
    *,
    run_id: bytes,
    spec_digest: bytes,
    protocol: str,
    facts: Mapping[str, Fact],
    bootstrap: RosterEntry,
    curator: RosterEntry,
    entries: Iterable[RosterEntry],
) -> Roster:
    """Make the roster of a run and sign it as bootstrap; entry i is user i's."""
    ordered = tuple(sorted(facts.items()))
    flat = Entries(b"".join(replace(entry, rows=None).to_bytes() for entry in entries), _rows_in(ordered))
    tree = len(flat), Tree(flat.leaves()).root, flat, b""
    unsigned = Roster(ROSTER_VERSION, run_id, spec_digest, protocol, ordered, bootstrap, curator, *tree, _UNSIGNED)
    return replace(unsigned, signature=sign_labelled(identity, _ROSTER_LABEL, unsigned.body))
