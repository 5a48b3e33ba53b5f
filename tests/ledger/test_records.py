from __future__ import annotations

import itertools
import struct
import time
import tracemalloc
import zlib
from contextlib import suppress
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.step import Message
from p2pdp.crypto.identity import Identity, sign_labelled, verify_labelled
from p2pdp.ledger import records
from p2pdp.ledger.entries import enveloped
from p2pdp.ledger.records import (
    CHOSEN,
    CLOSED,
    DRAWN,
    EVENT_KINDS,
    EXCLUSION_LABEL,
    FIRST_PREVIOUS,
    FORMAT_VERSION,
    HEAD_LABEL,
    KIND_NAMES,
    LEDGER_MAGIC,
    NO_VALUE_DIGEST,
    OPENED,
    OWN,
    PUBLISHED,
    RECEIVED,
    SALT_BYTES,
    SENT,
    SKELETON_MAGIC,
    STARTED,
    WOKEN,
    Chain,
    Contents,
    DamagedLedger,
    LedgerError,
    Record,
    carries_message,
    chain_problem,
    head_parts,
    packed_message,
    public_message,
    read,
    to_skeleton,
    whole_length,
    whole_message,
)
from p2pdp.wire.codec import pack_message, pack_value, unpack_message
from tests.support.known import cuts, flips

SALT = bytes(range(SALT_BYTES))
SECRET = b"the noised value"
TOKEN = b"\x92\xa5token\x92\x00\x07"
SCRIPT: list[tuple[int, tuple[Any, ...], bytes]] = [
    (OPENED, ("view", b"r" * 16, 3, b"d" * 32, 1, [2, 4]), b""),
    (STARTED, (0.25,), b""),
    (RECEIVED, (1.5, 2, TOKEN, b"v" * 16), SALT + SECRET),
    (DRAWN, (0, "gaussian", 1024.0, 0, [], 0, 0), b""),
    (CHOSEN, (5, 4), b""),
    (SENT, (4, TOKEN), SALT[::-1] + SECRET),
    (WOKEN, (2.0,), b""),
    (CLOSED, (b"s" * 64, b"k" * 32, [b"a" * 20]), b""),
]


def pieces(script: list[tuple[int, tuple[Any, ...], bytes]] | None = None) -> list[bytes]:
    """Each record's bytes."""
    chain = Chain()
    return [chain.append(*record) for record in (SCRIPT if script is None else script)]


LEDGER = LEDGER_MAGIC + b"".join(pieces())


def together(cuts_at: tuple[int, ...] = (2, 6)) -> list[bytes]:
    """The same records in fewer entries: cut only at these places."""
    chain, parts = Chain(), []
    for start, end in pairwise((0, *cuts_at, len(SCRIPT))):
        records_of = [(kind, *body) for kind, body, _ in SCRIPT[start:end]]
        parts.append(chain.entry(records_of, [value for _, _, value in SCRIPT[start:end]]))
    return parts


GROUPED = LEDGER_MAGIC + b"".join(together())


def digest(value: bytes) -> bytes:
    return blake2b(value, digest_size=32).digest()


def head(contents: Contents) -> bytes:
    return contents.records[-1].hash if contents.records else FIRST_PREVIOUS


def sound(data: bytes) -> Contents | None:
    """What the bytes hold, if nothing is wrong with them."""
    try:
        contents = read(data)
    except LedgerError:
        return None
    return contents if chain_problem(contents) is None and not contents.torn_bytes else None


# What the module's docstring promises


def entries(data: bytes) -> list[list[bytes]]:
    """What is stored behind the magic line: a length, a checksum that covers it, and an array, over and over."""
    found, at = [], 16
    while at < len(data):
        length, checksum = struct.unpack_from(">II", data, at)
        content = data[at + 8 : at + 8 + length]
        assert zlib.crc32(content, length) == checksum
        found.append(msgpack.unpackb(content))
        at += 8 + length
    assert at == len(data)
    return found


def test_a_ledger_is_a_magic_line_and_arrays_of_byte_strings_chained_by_hash() -> None:
    assert LEDGER[:16] == b"p2pdp ledger 06\n"
    stored = entries(LEDGER)
    assert len(stored) == len(SCRIPT)
    previous = bytes(32)
    for index, ((before, public, value), (kind, body, given_value)) in enumerate(zip(stored, SCRIPT, strict=True)):
        assert before == previous
        assert msgpack.unpackb(public) == [FORMAT_VERSION, index, [kind, *body]]
        assert value == given_value
        previous = digest(previous + public + digest(value))
    chain = Chain()
    for record in SCRIPT:
        chain.append(*record)
    assert (chain.count, chain.head) == (len(SCRIPT), previous)
    assert head(read(LEDGER)) == previous


def test_records_of_one_event_share_an_entry_with_one_hash() -> None:
    stored = entries(GROUPED)
    assert [len(parts) - 2 for parts in stored] == [2, 4, 2]
    before, public, *values = stored[1]
    assert msgpack.unpackb(public) == [FORMAT_VERSION, 2, *([kind, *body] for kind, body, _ in SCRIPT[2:6])]
    assert values == [value for _, _, value in SCRIPT[2:6]]
    one, other = read(LEDGER), read(GROUPED)
    linked = digest(before + public + b"".join(map(digest, values)))
    assert [record.hash for record in other.records[2:6]] == [linked] * 4
    assert [record.previous for record in other.records[2:6]] == [before] + [linked] * 3
    assert [records.records_in(piece) for piece in together()] == [2, 4, 2]
    told = [[(r.kind, r.index, r.body, r.value, r.digest) for r in contents.records] for contents in (one, other)]
    assert told[0] == told[1]
    assert chain_problem(other) is None
    skeleton = read(to_skeleton(GROUPED))
    assert chain_problem(skeleton) is None
    assert [(r.hash, r.digest) for r in skeleton.records] == [(r.hash, r.digest) for r in other.records]


@given(st.sets(st.integers(1, len(SCRIPT) - 1)))
def test_however_records_are_put_together_they_are_the_same(cuts_at: set[int]) -> None:
    data = LEDGER_MAGIC + b"".join(together(tuple(sorted(cuts_at))))
    for contents in (read(data), read(to_skeleton(data))):
        assert [(record.kind, tuple(record.body)) for record in contents.records] == [part[:2] for part in SCRIPT]
        assert chain_problem(contents) is None
    assert [record.value for record in read(data).records] == [value for _, _, value in SCRIPT]


def test_an_entry_is_torn_whole() -> None:
    whole, ends = read(GROUPED).records, [16]
    for piece in together():
        ends.append(ends[-1] + len(piece))
    for cut in list(cuts(GROUPED))[16:]:
        kept = max(end for end in ends if end <= len(cut))
        assert whole_length(cut) == kept
        assert read(cut).records == whole[: (0, 2, 6, 8)[ends.index(kept)]]


def test_an_entry_has_as_many_values_as_records() -> None:
    for count in (1, 3):
        public = records.pack((FORMAT_VERSION, 0, *[(STARTED, 1.0)] * count))
        for values in ([b""] * (count + 1), [b""] * (count - 1)):
            with pytest.raises(LedgerError):
                read(LEDGER_MAGIC + enveloped(records.pack((FIRST_PREVIOUS, public, *values))))


def test_reading_gives_back_what_was_appended() -> None:
    contents = read(LEDGER)
    assert not contents.skeleton
    assert contents.torn_bytes == 0
    assert chain_problem(contents) is None
    assert [(record.kind, tuple(record.body), record.value) for record in contents.records] == SCRIPT
    assert [record.index for record in contents.records] == list(range(len(SCRIPT)))
    assert [record.digest for record in contents.records] == [digest(value) for _, _, value in SCRIPT]
    assert [record.previous for record in contents.records[1:]] == [record.hash for record in contents.records[:-1]]


def test_the_skeleton_has_the_same_hashes_and_no_value() -> None:
    skeleton = to_skeleton(LEDGER)
    assert skeleton.startswith(b"p2pdp skelet 06\n")
    whole, bare = read(LEDGER), read(skeleton)
    assert bare.skeleton
    assert chain_problem(bare) is None
    for record, without in zip(whole.records, bare.records, strict=True):
        assert without.value is None
        assert (without.hash, without.digest, without.previous) == (record.hash, record.digest, record.previous)
        assert (without.kind, without.index, without.body) == (record.kind, record.index, record.body)
    for hidden in (SECRET, SALT, SALT[::-1]):
        assert hidden not in skeleton
    assert to_skeleton(skeleton) == skeleton


def test_every_kind_has_a_name_and_events_are_what_machines_are_told() -> None:
    assert len(KIND_NAMES) == 18
    assert [KIND_NAMES[kind] for kind in (OPENED, DRAWN, CLOSED, records.INPUTS, records.NOTE, records.MET)] == [
        "opened",
        "drawn",
        "closed",
        "inputs",
        "note",
        "met",
    ]
    assert {STARTED, RECEIVED, OWN, WOKEN, records.REFUSED} == EVENT_KINDS
    assert {RECEIVED, records.REFUSED} == records.ARRIVED
    assert digest(b"") == NO_VALUE_DIGEST


def test_the_text_of_a_record_shows_no_value_and_no_route() -> None:
    contents = read(LEDGER)
    assert repr(contents.records[2]) == "Record(received, index=2)"
    assert "noised" not in repr(contents)
    assert "token" not in repr(contents)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 14),
            st.lists(st.one_of(st.integers(-(2**63), 2**63), st.binary(), st.text(), st.floats(allow_nan=False))),
            st.binary(max_size=40),
        ),
        max_size=8,
    )
)
def test_any_records_come_back_from_ledger_and_skeleton(script: list[tuple[int, list[Any], bytes]]) -> None:
    data = LEDGER_MAGIC + b"".join(pieces([(kind, tuple(body), value) for kind, body, value in script]))
    contents, bare = read(data), read(to_skeleton(data))
    assert [(record.kind, [*record.body], record.value) for record in contents.records] == script
    assert [record.hash for record in contents.records] == [record.hash for record in bare.records]
    assert chain_problem(contents) is None
    assert whole_length(data) == len(data)


# Crashes: a torn tail


def test_a_tail_torn_anywhere_is_cut_off_and_never_misread() -> None:
    ends = [len(LEDGER_MAGIC)]
    for piece in pieces():
        ends.append(ends[-1] + len(piece))
    whole = read(LEDGER).records
    for cut in cuts(LEDGER):
        expected = max((end for end in ends if end <= len(cut)), default=0)
        assert whole_length(cut) == expected
        if not expected:
            with pytest.raises(LedgerError):
                read(cut)
            continue
        contents = read(cut)
        assert contents.records == whole[: ends.index(expected)]
        assert contents.torn_bytes == len(cut) - expected
        assert chain_problem(contents) is None
        assert to_skeleton(cut) == to_skeleton(LEDGER[:expected])
    assert whole_length(LEDGER) == len(LEDGER)


def test_a_torn_skeleton_is_seen_too() -> None:
    skeleton = to_skeleton(LEDGER)
    for cut in list(cuts(skeleton))[len(SKELETON_MAGIC) :]:
        contents = read(cut)
        assert whole_length(cut) + contents.torn_bytes == len(cut)
        assert len(contents.records) < len(SCRIPT)


@given(st.one_of(st.binary(max_size=200), st.integers(1, 5000).map(bytes)))
def test_whatever_is_no_entry_behind_the_last_one_is_a_torn_tail(tail: bytes) -> None:
    for data in (LEDGER_MAGIC, LEDGER, GROUPED, to_skeleton(LEDGER)):
        contents = read(data + tail)
        assert whole_length(data + tail) == len(data)
        assert contents.records == read(data).records
        assert contents.torn_bytes == len(tail)


@pytest.mark.parametrize("zeros", [1, 16, 4096])
def test_zeros_in_place_of_a_file_or_behind_a_part_of_its_first_line_are_nothing(zeros: int) -> None:
    for length in range(len(LEDGER_MAGIC)):
        assert whole_length(LEDGER_MAGIC[:length] + bytes(zeros)) == 0


def damaged(data: bytes) -> bool:
    try:
        whole = whole_length(data)
    except DamagedLedger:
        return True
    assert whole <= len(data)
    return False


def test_a_flipped_bit_in_any_entry_but_the_last_is_damage_and_in_the_last_a_torn_tail() -> None:
    last = len(LEDGER) - len(pieces()[-1])
    for at in range(16, len(LEDGER)):
        for bit in range(8):
            flipped = LEDGER[:at] + bytes([LEDGER[at] ^ 1 << bit]) + LEDGER[at + 1 :]
            if at < last:
                assert damaged(flipped)
            else:
                assert whole_length(flipped) == last


@given(st.data())
def test_a_lost_or_misdirected_write_before_the_last_entry_is_damage(data: st.DataObject) -> None:
    parts = pieces()
    place = data.draw(st.integers(0, len(parts) - 2))
    start = 16 + sum(map(len, parts[:place]))
    hole = bytes(len(parts[place]))
    assert damaged(LEDGER[:start] + hole + LEDGER[start + len(hole) :])
    other = data.draw(st.binary(min_size=1, max_size=len(hole)).filter(lambda one: one != LEDGER[start:][: len(one)]))
    assert damaged(LEDGER[:start] + other + LEDGER[start + len(other) :])


def test_a_file_full_of_false_beginnings_is_not_searched_for_ever() -> None:
    start = struct.pack(">II", 1 << 20, 0) + b"\x93\xc4\x20"
    hostile = LEDGER_MAGIC + start * 200_000
    began_s = time.process_time()
    assert damaged(hostile)
    assert time.process_time() - began_s < 5.0  # a search without a limit would read 200 GB


# Alterations


@pytest.mark.parametrize(
    "data", [LEDGER, to_skeleton(LEDGER), GROUPED, to_skeleton(GROUPED)], ids=["ledger", "skeleton", "grouped", "both"]
)
def test_no_flipped_bit_leaves_chain_and_head_as_they_were(data: bytes) -> None:
    expected = head(read(data))
    for flipped in flips(data):
        contents = sound(flipped)
        assert contents is None or head(contents) != expected


@pytest.mark.parametrize("position", range(len(SCRIPT)))
def test_a_removed_record_is_found(position: int) -> None:
    parts = pieces()
    del parts[position]
    contents = read(LEDGER_MAGIC + b"".join(parts))
    if position == len(SCRIPT) - 1:  # the end is not there: what follows from it is for the closing signature
        assert chain_problem(contents) is None
        assert head(contents) != head(read(LEDGER))
    else:
        assert chain_problem(contents) == (
            position,
            "does not continue the record before it: one of them was altered, removed or moved",
        )


def test_swapped_doubled_and_inserted_records_are_found() -> None:
    parts = pieces()
    for one in range(len(parts)):
        doubled = [*parts[: one + 1], *parts[one:]]
        assert chain_problem(read(LEDGER_MAGIC + b"".join(doubled))) is not None
        for other in range(one):
            swapped = parts.copy()
            swapped[one], swapped[other] = swapped[other], swapped[one]
            problem = chain_problem(read(LEDGER_MAGIC + b"".join(swapped)))
            assert problem is not None
            assert problem[0] == other
    for place in range(len(parts)):
        before = read(LEDGER).records[place]
        inserted = Chain(place, before.previous).append(WOKEN, (9.0,))
        problem = chain_problem(read(LEDGER_MAGIC + b"".join([*parts[:place], inserted, *parts[place:]])))
        assert problem is not None
        assert problem[0] == place + 1


def test_a_record_with_a_wrong_number_is_found() -> None:
    first = Chain()
    stored = first.append(*SCRIPT[0])
    other = Chain(5, first.head).append(*SCRIPT[1])
    assert chain_problem(read(LEDGER_MAGIC + stored + other)) == (1, "says that it is number 5")


def test_records_of_another_ledger_do_not_fit() -> None:
    foreign = pieces([(OPENED, ("view", b"x" * 16, 3), b""), *SCRIPT[1:]])
    mixed = [*pieces()[:4], *foreign[4:]]
    problem = chain_problem(read(LEDGER_MAGIC + b"".join(mixed)))
    assert problem is not None
    assert problem[0] == 4


def test_the_border_between_public_part_and_digest_cannot_be_moved() -> None:
    """The chain hashes both without a border; MessagePack and the digest's fixed length supply it."""
    skeleton = read(to_skeleton(LEDGER))
    record = skeleton.records[2]
    public = records.pack((FORMAT_VERSION, record.index, (record.kind, *record.body)))
    joined = public + record.digest
    for border in range(len(joined) + 1):
        if border != len(public):
            moved = SKELETON_MAGIC + enveloped(records.pack((record.previous, joined[:border], joined[border:])))
            with pytest.raises(LedgerError):
                read(moved)


# Foreign bytes


@pytest.mark.parametrize(
    "public",
    [
        b"",
        b"\xc1",
        b"\x05",
        records.pack([FORMAT_VERSION, 0]),
        records.pack([1, 0, [STARTED, 1.0]]),
        records.pack([3, 0, [STARTED, 1.0]]),
        records.pack([FORMAT_VERSION, 0, [18]]),
        records.pack([FORMAT_VERSION, 0, [-1]]),
        records.pack([FORMAT_VERSION, 0, []]),
        records.pack([FORMAT_VERSION, 0, STARTED]),
        records.pack([FORMAT_VERSION, 0, [STARTED, 1.0], [STARTED, 1.0]]),
        records.pack([float(FORMAT_VERSION), 0, [STARTED]]),
        records.pack([True, 0, [STARTED]]),
        records.pack([FORMAT_VERSION, 0, [True]]),
        records.pack([FORMAT_VERSION, 0.0, [STARTED]]),
        records.pack([FORMAT_VERSION, None, [STARTED]]),
        records.pack(["4", 0, [STARTED]]),
        records.pack({1: 1, 2: 1, 3: 1}),
        records.pack(bytes([4, 0, 1])),
        records.pack([FORMAT_VERSION, 0, [STARTED]]) + b"\x00",
        records.pack([FORMAT_VERSION, 0, [STARTED]])[:-1],
        records.pack([FORMAT_VERSION, 0, [STARTED, {"a": 1}]]),
        records.pack([FORMAT_VERSION, 0, [STARTED, msgpack.ExtType(1, b"x")]]),
        b"\xdd\xff\xff\xff\xff\x01",
        b"\x93\x03\x01\xdd\xff\xff\xff\xff",
    ],
)
@pytest.mark.parametrize(("magic", "third"), [(LEDGER_MAGIC, b""), (SKELETON_MAGIC, b"")])
def test_a_public_part_that_is_not_ours_is_refused(public: bytes, magic: bytes, third: bytes) -> None:
    with pytest.raises(LedgerError, match="record 0"):
        read(magic + enveloped(records.pack((FIRST_PREVIOUS, public, third))))


@pytest.mark.parametrize(
    "stored",
    [
        records.pack(5),
        records.pack("text"),
        records.pack({}),
        records.pack({"a": b"b"}),
        records.pack(None),
        records.pack([b"1", b"2"]),
        records.pack([b"1"] * (3 + records.ENTRY_RECORDS_MAX)),
        records.pack([b"1", "2", b"3"]),
        records.pack([b"1", [b"2"], b"3"]),
        records.pack([b"1", b"2", 3]),
        b"\xdd\xff\xff\xff\xff" + bytes(64),
        b"\xc1",
        bytes(64),
        b"\x93" * 5000,
    ],
)
@pytest.mark.parametrize("magic", [LEDGER_MAGIC, SKELETON_MAGIC])
def test_what_is_no_record_is_refused(stored: bytes, magic: bytes) -> None:
    for parse in (read, whole_length):
        with pytest.raises(LedgerError, match="not a record"):
            parse(magic + enveloped(stored))


@pytest.mark.parametrize("third", [bytes(31), bytes(33), bytes(64), NO_VALUE_DIGEST])
def test_a_skeletons_digest_has_its_length_and_nothing_has_none(third: bytes) -> None:
    public = records.pack((FORMAT_VERSION, 0, (STARTED, 1.0)))
    with pytest.raises(LedgerError, match="record 0"):
        read(SKELETON_MAGIC + enveloped(records.pack((FIRST_PREVIOUS, public, third))))
    for whole in (b"", digest(b"salted")):
        (record,) = read(SKELETON_MAGIC + enveloped(records.pack((FIRST_PREVIOUS, public, whole)))).records
        assert record.digest == (whole or NO_VALUE_DIGEST)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"p2pdp ledger 01\n", r"version 1\b.* version 6\b"),
        (b"p2pdp skelet 02\n" + bytes(40), r"version 2\b.* version 6\b"),
        (b"PK\x03\x04" + bytes(60), "neither a ledger nor a skeleton"),
        (b"{}" * 20, "neither a ledger nor a skeleton"),
    ],
)
def test_foreign_files_and_versions_are_refused_and_never_cut(data: bytes, error: str) -> None:
    for parse in (read, to_skeleton, whole_length):
        with pytest.raises(LedgerError, match=error):
            parse(data)


@given(magic=st.sampled_from([b"", LEDGER_MAGIC, SKELETON_MAGIC]), data=st.binary(max_size=300))
def test_garbage_is_refused_or_torn(magic: bytes, data: bytes) -> None:
    try:
        contents = read(magic + data)
    except LedgerError:
        return
    assert whole_length(magic + data) + contents.torn_bytes == len(magic + data)


NESTED = b"\x93\x02\x01" + b"\xdd\x00\x0f\xff\xff" * 400 + bytes(1 << 20)


@pytest.mark.parametrize(
    "stored",
    [
        records.pack((FIRST_PREVIOUS, NESTED, NO_VALUE_DIGEST)),  # lists of a million items, 400 deep
        b"\x93\xc6\xff\xff\xff\xff" + bytes(1000),  # 4 GiB that are not there: a torn tail
    ],
)
def test_claimed_lengths_reserve_no_memory(stored: bytes) -> None:
    data = SKELETON_MAGIC + stored
    tracemalloc.start()
    try:
        with suppress(LedgerError):
            assert read(data).records == []
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 << 20


RUN = b"r" * 16
HEAD = b"h" * 32


def test_the_parts_are_laid_out_as_documented() -> None:
    assert head_parts("view", RUN, 3, 258, HEAD) == (b"view", RUN, b"\0\0\0\3", b"\0\0\0\0\0\0\1\2", HEAD)
    assert head_parts("view", RUN, 3, 258, HEAD, b"key", b"more")[-3:] == (HEAD, b"key", b"more")
    assert head_parts("view", RUN, -2, 0, HEAD)[2] == b"\xff\xff\xff\xfe"


def test_what_one_head_says_no_other_says() -> None:
    heads = {
        head_parts(*terms)
        for terms in itertools.product(
            ("view", "private"), (RUN, b"R" * 16), (-2, -1, 0, 1, 255), (0, 1, 256), (HEAD, b"H" * 32)
        )
    }
    assert len(heads) == 2 * 2 * 5 * 3 * 2


def test_a_signature_holds_for_its_own_head_and_purpose_only() -> None:
    identity = Identity(bytes(32))
    signed = head_parts("view", RUN, 3, 7, HEAD)
    signature = sign_labelled(identity, HEAD_LABEL, *signed)
    assert verify_labelled(identity.public, signature, HEAD_LABEL, *signed)
    assert not verify_labelled(identity.public, signature, EXCLUSION_LABEL, *signed)
    for other in (("private", RUN, 3, 7, HEAD), ("view", RUN, 4, 7, HEAD), ("view", RUN, 3, 8, HEAD)):
        assert not verify_labelled(identity.public, signature, HEAD_LABEL, *head_parts(*other))


MESSAGE = Message("token", (3, 14), 271828)
PACKED = pack_message(MESSAGE)
PART = b"saltsaltsaltsalt" + pack_value(MESSAGE.value)
BODIES = {
    RECEIVED: (1.5, 7, PACKED, bytes(16)),
    OWN: (1.5, PACKED),
    SENT: (7, PACKED),
    PUBLISHED: (PACKED,),
}


def stored(kind: int, *, skeleton: bool = False, part: bytes = PART) -> Record:
    data = LEDGER_MAGIC + Chain().append(kind, BODIES[kind], part)
    (record,) = read(to_skeleton(data) if skeleton else data).records
    return record


@pytest.mark.parametrize("kind", BODIES, ids=lambda kind: KIND_NAMES[kind])
def test_a_message_comes_back_from_each_kind_that_holds_one(kind: int) -> None:
    record = stored(kind)
    assert carries_message(record)
    assert packed_message(record) == PACKED
    assert public_message(record) == Message("token", (3, 14), None)
    assert whole_message(record) == MESSAGE


@pytest.mark.parametrize("kind", BODIES, ids=lambda kind: KIND_NAMES[kind])
def test_a_skeleton_holds_messages_without_their_values(kind: int) -> None:
    record = stored(kind, skeleton=True)
    assert public_message(record) == whole_message(record) == Message("token", (3, 14), None)


def test_a_message_without_a_value_has_none() -> None:
    assert whole_message(stored(SENT, part=b"")).value is None


@pytest.mark.parametrize("kind", [STARTED, CHOSEN, CLOSED])
def test_other_records_carry_no_message(kind: int) -> None:
    data = LEDGER_MAGIC + Chain().append(kind, (1.0, 2))
    assert not carries_message(read(data).records[0])


@pytest.mark.parametrize(
    "body", [(), (b"",), (b"\xc1",), (5,), ("text",), (None,), ([b"x"],), (PACKED[:-1],)], ids=repr
)
def test_a_record_without_a_readable_message_is_an_error_of_the_ledger(body: tuple[object, ...]) -> None:
    """Whoever wrote a skeleton may have put anything into it and still have chained it rightly."""
    (record,) = read(LEDGER_MAGIC + Chain().append(PUBLISHED, body)).records
    for parse in (public_message, whole_message):
        with pytest.raises(LedgerError, match="record 0: holds no readable message"):
            parse(record)


@given(st.lists(st.tuples(st.integers(-3, 3) | st.text(max_size=2) | st.lists(st.integers(0, 2), max_size=2))))
def test_messages_without_value_are_read_alike_however_often(several: list[tuple[Any, ...]]) -> None:
    for fields in (*several, *several):
        chain = Chain()
        body = (0.0, 1, pack_message(Message("mark", fields)), bytes(16))
        (record,) = read(LEDGER_MAGIC + chain.append(RECEIVED, body)).records
        message = public_message(record)
        assert message == unpack_message(body[2], b"")
        assert list(map(type, message.fields)) == list(map(type, fields))
        for field in message.fields:  # what can be changed belongs to whoever asked for it
            if isinstance(field, list):
                field.append(9)
