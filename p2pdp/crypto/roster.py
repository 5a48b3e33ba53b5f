"""The participants of a run, their keys, and the public facts of the run, signed by bootstrap.

Guarantee: a roster has one encoding. `from_bytes` and `from_json` refuse every other, so a digest names one roster and
a round trip through either form keeps digest and signature. After `check` the roster is what this bootstrap signed.
`entry` returns an entry only after its own signature is verified: the node's identity signed the key of this run, so
not even bootstrap can replace it with a key of its own. It is verified when first asked for, since a node talks to few
of the others.

The caller owes: `check` with the key of the join token before anything of a roster is believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import pairwise
from math import isfinite
from typing import Any, Final, overload

from nacl.bindings import crypto_scalarmult
from nacl.exceptions import CryptoError

from p2pdp.core.errors import VerificationFailed
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user, peer_name
from p2pdp.core.rows import ROWS_BYTES, Rows, rows_in
from p2pdp.crypto.identity import KEY_BYTES, SIGNATURE_BYTES, Identity, sign_labelled, verify_labelled
from p2pdp.wire.codec import CodecError, pack, unpack

ROSTER_VERSION: Final = 1
ENTRY_BYTES: Final = 2 * KEY_BYTES + SIGNATURE_BYTES
RUN_ID_BYTES: Final = 16
DIGEST_BYTES: Final = 32

_ENTRY_LABEL: Final = "p2pdp roster entry"
_ROSTER_LABEL: Final = "p2pdp roster"
_UNSIGNED: Final = bytes(SIGNATURE_BYTES)
_ANY_SCALAR: Final = bytes(31) + b"\x40"

Fact = int | str | float


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
    """The users' entries, taken out of one byte string as they are asked for, each with its number of rows."""

    flat: bytes
    rows: Rows | None = None

    def __post_init__(self) -> None:
        """Refuse a piece of an entry."""
        if len(self.flat) % ENTRY_BYTES:
            raise RosterError(f"the roster's entries have {len(self.flat)} bytes, no multiple of {ENTRY_BYTES}")
        if self.rows is not None and len(self.rows) != len(self):
            raise RosterError(f"the roster has {len(self)} users, and says of {len(self.rows)} how many rows they have")

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
        start = index % len(self) * ENTRY_BYTES
        found = RosterEntry.from_bytes(self.flat[start : start + ENTRY_BYTES])
        return found if self.rows is None else replace(found, rows=self.rows[index])


@dataclass(frozen=True, slots=True)
class Roster:
    """The participants of a run. Made by `sign_roster`, `from_bytes` and `from_json`."""

    version: int
    run_id: bytes
    spec_digest: bytes
    protocol: str
    facts: tuple[tuple[str, Fact], ...]
    bootstrap: RosterEntry
    curator: RosterEntry
    entries: Entries
    signature: bytes
    digest: bytes = field(init=False, repr=False, compare=False)
    _valid: set[Peer] = field(init=False, repr=False, compare=False, default_factory=set)

    def __post_init__(self) -> None:
        """Check what has one right form, and fix the digest of the signed bytes."""
        lengths = (len(self.run_id), len(self.spec_digest), len(self.signature))
        if self.version != ROSTER_VERSION:
            raise RosterError(
                f"the roster has format version {self.version}, and this program knows {ROSTER_VERSION} only"
            )
        if lengths != (RUN_ID_BYTES, DIGEST_BYTES, SIGNATURE_BYTES) or type(self.protocol) is not str:
            raise RosterError("the roster's run id, spec digest, signature or protocol has a wrong length or type")
        _check_facts(self.facts)
        if self.entries.rows != _rows_in(self.facts) or (self.bootstrap.rows, self.curator.rows) != (None, None):
            raise RosterError("the roster's entries do not state the numbers of rows that are signed")
        object.__setattr__(self, "digest", blake2b(self.body, digest_size=DIGEST_BYTES).digest())

    def __repr__(self) -> str:
        return f"Roster({self.run_id.hex()}, {self.n} users)"

    @property
    def body(self) -> bytes:
        """Return the signed bytes, made on demand: storing them would double the size of a large roster."""
        return _encoded(self)

    @property
    def n(self) -> int:
        """Return the number of users, the n of every claim."""
        return len(self.entries)

    def check(self, bootstrap_public: bytes) -> None:
        """Refuse a roster that is not signed by the holder of this key."""
        if self.bootstrap.identity != bootstrap_public:
            raise RosterError("the roster names another bootstrap than the join token does")
        if not verify_labelled(bootstrap_public, self.signature, _ROSTER_LABEL, self.body):
            raise RosterError("bootstrap's signature on the roster is not valid: the roster was altered")
        self._check_distinct()

    def _check_distinct(self) -> None:
        """Refuse a roster in which two peers are one, which claims against each of them leave out."""
        flat, roles = self.entries.flat, (self.bootstrap, self.curator)
        for what, first in (("identity", 0), ("run key", KEY_BYTES)):
            known = [entry.to_bytes()[first : first + KEY_BYTES] for entry in roles]
            known += [flat[at : at + KEY_BYTES] for at in range(first, len(flat), ENTRY_BYTES)]
            if len(set(known)) < len(known):
                twice = _first_twice(known)
                names = " and ".join(f"user {peer}" if is_user(peer) else str(peer_name(peer)) for peer in twice)
                raise RosterError(f"the roster gives {names} the same {what}: one party would count as two")

    def entry(self, peer: Peer) -> RosterEntry:
        """Return the entry of a user or a role, whose signature is valid."""
        if peer >= self.n or peer < CURATOR:
            raise RosterError(f"the roster has {self.n} users, and no user {peer}")
        entry = {BOOTSTRAP: self.bootstrap, CURATOR: self.curator}[peer] if peer < 0 else self.entries[peer]
        if peer not in self._valid:
            if not entry.is_signed(self.run_id):
                raise RosterError(f"the roster's entry of {peer_name(peer)} has no valid signature for this run")
            self._valid.add(peer)
        return entry

    def to_bytes(self) -> bytes:
        return pack([self.body, self.signature])

    @classmethod
    def from_bytes(cls, data: bytes) -> Roster:
        """Read what `to_bytes` wrote, and nothing else."""
        try:
            body, signature = _typed(unpack(data), (bytes, bytes))
            parts = _typed(unpack(body), (int, bytes, bytes, str, list, bytes, bytes, bytes))
            version, run_id, spec_digest, protocol, pairs, bootstrap, curator, entries = parts
            facts = tuple((name, value) for name, value in pairs)
        except (CodecError, TypeError, ValueError) as error:
            raise RosterError("the roster is malformed") from error
        roles = RosterEntry.from_bytes(bootstrap), RosterEntry.from_bytes(curator)
        users = Entries(entries, _rows_in(facts))
        roster = cls(version, run_id, spec_digest, protocol, facts, *roles, users, signature)
        if roster.to_bytes() != data:
            raise RosterError("the roster is not in the one encoding that rosters have")
        return roster

    def to_json(self) -> dict[str, Any]:
        """Return what `roster.json` holds: byte strings as hexadecimal text, entries in the users' order."""
        return {
            "version": self.version,
            "run_id": self.run_id.hex(),
            "spec_digest": self.spec_digest.hex(),
            "protocol": self.protocol,
            "facts": dict(self.facts),
            "bootstrap": _entry_to_json(self.bootstrap),
            "curator": _entry_to_json(self.curator),
            "entries": [_entry_to_json(entry) for entry in self.entries],
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


def _first_twice(known: Sequence[bytes]) -> tuple[Peer, Peer]:
    """Return the first two peers with the same key, of a list that begins with bootstrap and curator."""
    places: dict[bytes, Peer] = {}
    for peer, key in zip((BOOTSTRAP, CURATOR, *range(len(known))), known, strict=False):
        if key in places:
            return places[key], peer
        places[key] = peer
    raise ValueError("all keys differ")


def _check_facts(facts: tuple[tuple[str, Fact], ...]) -> None:
    names = [name for name, _ in facts]
    if any(type(name) is not str for name in names) or any(first >= second for first, second in pairwise(names)):
        raise RosterError("the facts of a roster must have names, each once, in order")
    for name, value in facts:
        wide = type(value) is int and not -(1 << 63) <= value < 1 << 63
        if type(value) not in (int, str, float) or wide or (type(value) is float and not isfinite(value)):
            raise RosterError(f"the fact {name!r} of the roster must be text, a finite number or an integer of 64 bits")


def _encoded(roster: Roster) -> bytes:
    parts = (roster.version, roster.run_id, roster.spec_digest, roster.protocol, roster.facts)
    return pack([*parts, roster.bootstrap.to_bytes(), roster.curator.to_bytes(), roster.entries.flat])


def _typed(parts: object, kinds: tuple[type, ...]) -> list[Any]:
    if type(parts) is not list or tuple(map(type, parts)) != kinds:
        raise TypeError("a part is missing or has a wrong type")
    return parts


def _entry_to_json(entry: RosterEntry) -> dict[str, str]:
    return {"identity": entry.identity.hex(), "box": entry.box.hex(), "signature": entry.signature.hex()}


def _entry_from_json(document: Any) -> RosterEntry:
    return RosterEntry.from_bytes(b"".join(bytes.fromhex(document[part]) for part in ("identity", "box", "signature")))


def _from_json(document: Any) -> Roster:
    facts = tuple(sorted(document["facts"].items()))
    return Roster(
        version=document["version"],
        run_id=bytes.fromhex(document["run_id"]),
        spec_digest=bytes.fromhex(document["spec_digest"]),
        protocol=document["protocol"],
        facts=facts,
        bootstrap=_entry_from_json(document["bootstrap"]),
        curator=_entry_from_json(document["curator"]),
        entries=Entries(b"".join(_entry_from_json(entry).to_bytes() for entry in document["entries"]), _rows_in(facts)),
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
    parts = (ROSTER_VERSION, run_id, spec_digest, protocol, ordered, bootstrap, curator, flat)
    body = Roster(*parts, _UNSIGNED).body
    return Roster(*parts, sign_labelled(identity, _ROSTER_LABEL, body))
