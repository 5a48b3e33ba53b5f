from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import VerificationFailed
from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.core.rows import ROWS
from p2pdp.crypto import roster as rosters
from p2pdp.crypto.channel import CONTEXT_BYTES, Channel, ChannelError
from p2pdp.crypto.facts import Fact
from p2pdp.crypto.identity import Identity, RunKey, verify_labelled
from p2pdp.crypto.roster import Entries, Roster, RosterEntry, RosterError, sign_entry, sign_roster
from tests.support.known import cuts, flips, known, names

RUN_ID, SPEC_DIGEST = bytes([1] * 16), bytes([3] * 32)
IDENTITIES = [Identity(bytes([40 + number] * 32)) for number in range(5)]
KEYS = [RunKey(bytes([80 + number] * 32)) for number in range(5)]
ENTRIES = [sign_entry(identity, RUN_ID, key.public) for identity, key in zip(IDENTITIES, KEYS, strict=True)]
FACTS: dict[str, Fact] = {"weights": "lazy", "lambda": 0.5, "graph_degree": 4}
ANY_FACTS = st.dictionaries(
    st.text(max_size=6),
    st.one_of(
        st.integers(-(1 << 63), (1 << 63) - 1), st.text(max_size=6), st.floats(allow_nan=False, allow_infinity=False)
    ),
    max_size=4,
)


def roster_of(facts: dict[str, Fact] = FACTS, users: int = 3, protocol: str = "walk.sum") -> Roster:
    return sign_roster(
        IDENTITIES[0],
        run_id=RUN_ID,
        spec_digest=SPEC_DIGEST,
        protocol=protocol,
        facts=facts,
        bootstrap=ENTRIES[0],
        curator=ENTRIES[1],
        entries=ENTRIES[2 : 2 + users],
    )


@pytest.mark.parametrize("row", known("crypto_roster"), ids=names("crypto_roster"))
def test_known_answers(row: dict[str, Any]) -> None:
    entries = [RosterEntry.from_bytes(bytes.fromhex(entry)) for entry in row["entries"]]
    identity = Identity(bytes.fromhex(row["bootstrap_seed"]))
    roster = sign_roster(
        identity,
        run_id=bytes.fromhex(row["run_id"]),
        spec_digest=bytes.fromhex(row["spec_digest"]),
        protocol=row["protocol"],
        facts=row["facts"],
        bootstrap=entries[0],
        curator=entries[1],
        entries=entries[2:],
    )
    assert roster.to_bytes().hex() == row["roster"]
    assert roster.digest.hex() == row["digest"]
    again = Roster.from_bytes(bytes.fromhex(row["roster"]))
    assert again == roster
    again.check(identity.public)
    assert [again.entry(peer) for peer in (BOOTSTRAP, CURATOR, 0, 1, 2)] == entries
    assert again.n == 3
    assert entries == ENTRIES
    assert roster.root.hex() == row["root"]
    for part in row["parts"]:
        assert roster.part(part["users"]).hex() == part["roster"]
        read = Roster.from_bytes(bytes.fromhex(part["roster"]))
        read.check(identity.public)
        assert (read.digest, read.n, list(read.entries.named)) == (roster.digest, 3, part["users"])
        assert [read.entry(user) for user in part["users"]] == [entries[2 + user] for user in part["users"]]


@pytest.mark.parametrize("row", known("crypto_bad_roster"), ids=names("crypto_bad_roster"))
def test_known_bad_answers(row: dict[str, Any]) -> None:
    data = bytes.fromhex(row["roster"])
    if row["stage"] in ("parse", "version"):
        with pytest.raises(RosterError, match="format version" if row["stage"] == "version" else "roster"):
            Roster.from_bytes(data)
        return
    roster = Roster.from_bytes(data)
    if row["stage"] == "check":
        with pytest.raises(RosterError, match="bootstrap"):
            roster.check(bytes.fromhex(row["bootstrap"]))
        return
    roster.check(bytes.fromhex(row["bootstrap"]))
    assert roster.entry(BOOTSTRAP) == ENTRIES[0]
    assert not roster.entries[0].is_valid(roster.run_id)
    if roster.entries[0].is_signed(roster.run_id):  # who agrees on a secret with it finds that there is none
        with pytest.raises(ChannelError, match="weak_key"):
            Channel(RunKey(bytes(32)), roster.entry(0).box, bytes(CONTEXT_BYTES), 1, 0).agree()
        return
    with pytest.raises(RosterError, match="entry of 0 "):
        roster.entry(0)


@given(ANY_FACTS, st.integers(0, 3), st.text(max_size=9))
def test_rosters_come_back_from_bytes_and_json(facts: dict[str, Fact], users: int, protocol: str) -> None:
    roster = roster_of(facts, users, protocol)
    assert dict(roster.facts) == facts
    document = json.loads(json.dumps(roster.to_json()))
    for again in (Roster.from_bytes(roster.to_bytes()), Roster.from_json(document)):
        assert again == roster
        assert (again.to_bytes(), again.digest, again.signature) == (roster.to_bytes(), roster.digest, roster.signature)
        again.check(IDENTITIES[0].public)
        assert again.n == users


def test_each_turned_bit_is_found_before_a_roster_is_believed() -> None:
    data = roster_of(users=1).to_bytes()
    for damaged in flips(data):
        with pytest.raises(RosterError):
            Roster.from_bytes(damaged).check(IDENTITIES[0].public)


def test_each_cut_and_each_tail_is_refused() -> None:
    data = roster_of(users=1).to_bytes()
    for cut in (*cuts(data), data + b"\0", data + data):
        with pytest.raises(RosterError):
            Roster.from_bytes(cut)


@given(st.binary(max_size=400))
def test_any_bytes_are_a_roster_error(data: bytes) -> None:
    with pytest.raises(RosterError):
        Roster.from_bytes(data)


def altered(path: tuple[str | int, ...], value: object) -> dict[str, Any]:
    document: Any = json.loads(json.dumps(roster_of().to_json()))
    inner = document
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return dict(document)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("version",), 1),
        (("version",), 3),
        (("version",), True),
        (("version",), 1.0),
        (("run_id",), "zz"),
        (("run_id",), "00" * 16),
        (("run_id",), 5),
        (("spec_digest",), "AB" * 32),
        (("protocol",), 7),
        (("protocol",), "walk.sgd"),
        (("protocol",), "\ud800"),
        (("facts",), []),
        (("facts", "lambda"), float("nan")),
        (("facts", "lambda"), 0.25),
        (("facts", "lambda"), None),
        (("facts", "more"), 1),
        (("facts", "more"), 1 << 63),
        (("entries",), 5),
        (("entries",), []),
        (("entries", 0), {}),
        (("entries", 0, "box"), "00"),
        (("entries", 0, "more"), "00"),
        (("curator",), None),
        (("signature",), "00"),
        (("digest",), "00" * 32),
        (("n",), 2),
        (("n",), "3"),
        (("n",), 3.0),
        (("root",), "00" * 32),
        (("root",), "00"),
        (("users",), [0, 1, 2]),
        (("users",), [0, 1]),
        (("users",), 3),
        (("proof",), "00" * 32),
        (("proof",), None),
        (("more",), 1),
    ],
)
def test_an_altered_file_is_refused(path: tuple[str | int, ...], value: object) -> None:
    with pytest.raises(RosterError):
        Roster.from_json(altered(path, value))


@pytest.mark.parametrize("document", [None, [], {}, "roster", 5])
def test_a_file_that_is_no_roster_is_refused(document: object) -> None:
    with pytest.raises(RosterError, match="malformed"):
        Roster.from_json(document)


def test_an_altered_signature_in_a_file_is_found_by_check() -> None:
    roster = Roster.from_json(altered(("signature",), "00" * 64))
    with pytest.raises(RosterError, match="signature"):
        roster.check(IDENTITIES[0].public)


def test_errors_are_one_sentence_and_say_that_verification_failed() -> None:
    assert issubclass(RosterError, VerificationFailed)
    with pytest.raises(RosterError, match=r"^the roster names another bootstrap than the join token does$"):
        roster_of().check(IDENTITIES[1].public)


def test_entries_are_verified_on_first_use_only(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []

    def verified(public: bytes, signature: bytes, label: str, *parts: bytes) -> bool:
        asked.append(public)
        return verify_labelled(public, signature, label, *parts)

    monkeypatch.setattr(rosters, "verify_labelled", verified)
    roster = Roster.from_bytes(roster_of().to_bytes())
    assert asked == []
    for peer in (2, CURATOR, 2, CURATOR, 2):
        roster.entry(peer)
    assert asked == [IDENTITIES[4].public, IDENTITIES[1].public]


@pytest.mark.parametrize("peer", [3, 100, -3])
def test_who_is_not_in_the_roster_has_no_entry(peer: int) -> None:
    with pytest.raises(RosterError, match=f"no user {peer}"):
        roster_of().entry(peer)


def test_an_entry_is_valid_for_its_run_and_key_only() -> None:
    entry = ENTRIES[2]
    assert entry.is_valid(RUN_ID)
    assert not entry.is_valid(bytes(16))
    assert RosterEntry.from_bytes(entry.to_bytes()) == entry
    for damaged in flips(entry.to_bytes()):
        assert not RosterEntry.from_bytes(damaged).is_valid(RUN_ID)
    for cut in (*cuts(entry.to_bytes()), entry.to_bytes() + b"\0"):
        with pytest.raises(RosterError):
            RosterEntry.from_bytes(cut)
    weak = sign_entry(IDENTITIES[2], RUN_ID, bytes(32))
    assert weak.is_signed(RUN_ID)
    assert not weak.is_valid(RUN_ID)


def test_entries_are_a_sequence() -> None:
    entries = roster_of().entries
    assert len(entries) == 3
    assert list(entries) == ENTRIES[2:]
    assert entries[-1] == ENTRIES[4]
    assert entries[1:] == ENTRIES[3:]
    assert list(Entries(b"")) == []
    for index in (3, -4):
        with pytest.raises(IndexError):
            entries[index]
    with pytest.raises(RosterError, match="128"):
        Entries(bytes(129))


@pytest.mark.parametrize("facts", [{"a": None}, {"a": True}, {"a": float("inf")}, {"a": 1 << 63}, {"a": b"b"}, {1: 1}])
def test_facts_are_text_or_finite_numbers(facts: Any) -> None:
    with pytest.raises(RosterError, match="fact"):
        roster_of(facts)


def test_a_repr_holds_public_identities_at_most() -> None:
    roster = roster_of()
    assert repr(roster) == f"Roster({RUN_ID.hex()}, 3 users)"
    assert repr(roster.entries) == "Entries(3)"
    assert repr(roster.entries[0]) == f"RosterEntry({IDENTITIES[2].public.hex()})"


STATING = [
    sign_entry(identity, RUN_ID, key.public, rows)
    for identity, key, rows in zip(IDENTITIES, KEYS, (5, 2000, 1, 77, 3), strict=True)
]


def stated(entries: list[RosterEntry], text: str) -> Roster:
    return sign_roster(
        IDENTITIES[0],
        run_id=RUN_ID,
        spec_digest=SPEC_DIGEST,
        protocol="toy",
        facts={"n": len(entries) - 2, ROWS: text},
        bootstrap=ENTRIES[0],
        curator=ENTRIES[1],
        entries=entries[2:],
    )


def rows_of(entries: list[RosterEntry]) -> str:
    return ",".join(str(entry.rows) for entry in entries[2:])


def test_an_entry_states_rows_that_its_user_signed() -> None:
    for entry in STATING:
        assert RosterEntry.from_bytes(entry.to_bytes()) == entry
        assert entry.is_valid(RUN_ID)
        for other in (None, (entry.rows or 0) + 1):
            assert not replace(entry, rows=other).is_signed(RUN_ID)


def test_a_roster_with_rows_round_trips_and_its_entries_are_signed() -> None:
    roster = stated(STATING, rows_of(STATING))
    roster.check(IDENTITIES[0].public)
    assert Roster.from_bytes(roster.to_bytes()) == roster
    assert Roster.from_json(json.loads(json.dumps(roster.to_json()))) == roster
    for user in range(roster.n):
        assert roster.entry(user) == STATING[user + 2]


def test_bootstrap_cannot_change_what_a_user_stated() -> None:
    first, *rest = rows_of(STATING).split(",")
    roster = stated(STATING, ",".join([str(int(first) + 1), *rest]))
    with pytest.raises(RosterError):
        roster.entry(0)
    roster.entry(1)


@pytest.mark.parametrize("text", ["", "1", "1,2,3,4", "1,2,x", "0,1,2", "01,1,2", "1,2,3,", "1,2,9999999999"])
def test_numbers_of_rows_have_one_form(text: str) -> None:
    with pytest.raises(RosterError):
        stated(STATING, text)
