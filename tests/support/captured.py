"""Secrets of a run, and where they occur in captured traffic."""

from __future__ import annotations

import os
import signal

from p2pdp.ledger.records import (
    INPUTS,
    KIND_NAMES,
    POOL,
    SALT_BYTES,
    Record,
    carries_message,
    packed_type,
    read,
    whole_message,
)
from p2pdp.ledger.stored import bytes_of
from p2pdp.protocols import names, protocol
from p2pdp.protocols.run_plan import plan_of_facts
from p2pdp.replay.evidence import Evidence
from p2pdp.wire.codec import unpack_value
from p2pdp.wire.frames import HELLO
from tests.support.capture import Seen, search, spellings
from tests.support.launched import Launched, wait_for

NODES = 5
STANDS = 0, 1  # the first node, at its first frame
TELLING_BYTES = 7  # shorter strings stand somewhere in a megabyte of noise by chance
IN_CLEAR = (HELLO,)
# Values of 40 bits and more on the grid, so that however they are written they are no padding and no prefix.
LARGE = "clip = [0.0, 1.0]", "clip = [1e5, 1e6]"


def large(text: str) -> str:
    assert LARGE[0] in text
    return text.replace(*LARGE).replace("[run]\n", "[run]\naudit = false\n")


def keys(run: Launched) -> dict[str, list[bytes]]:
    """Takes a copy of every key while a node stands still; the keys of a run do not outlive it."""
    stopped = run.stands()
    wait_for(lambda: len(list(run.folder.rglob("run.key"))) == NODES + 2, "all keys of the run are there")
    copies = {name: [path.read_bytes() for path in run.folder.rglob(name)] for name in ("run.key", "identity.key")}
    os.kill(stopped, signal.SIGCONT)
    assert [len(key) for of_kind in copies.values() for key in of_kind] == [32] * 2 * (NODES + 2)
    tokens = (run.folder / "curator" / "tokens" / "secrets").read_bytes()
    copies["token secrets"] = [tokens[16 * number : 16 * (number + 1)] for number in range(NODES)]
    return {name: [form for key in of_kind for form in (key, key.hex().encode())] for name, of_kind in copies.items()}


def numbers_in(record: Record) -> list[int]:
    """What a record holds of values and draws, in steps of the grid."""
    value = unpack_value((record.value or b"")[SALT_BYTES:]) if record.kind in (INPUTS, POOL) else None
    if carries_message(record):
        value = whole_message(record).value
    if value is None or isinstance(value, bytes):
        return []
    return [int(number) for number in (value if hasattr(value, "__len__") else [value])]


def secrets_in(evidence: Evidence) -> dict[str, list[bytes]]:
    step = 2.0 ** plan_of_facts(evidence.spec, dict(evidence.roster.facts)).plan.grid_exponent
    found: dict[str, list[bytes]] = {"salts": [], "values": [], "inputs": [], "draws": []}
    names = {INPUTS: "inputs", POOL: "draws"}
    for ledger in (*evidence.views.values(), *evidence.private.values()):
        for record in read(bytes_of(ledger)).records:
            if record.value:
                found["salts"] += [record.value[:SALT_BYTES], record.value[:SALT_BYTES].hex().encode()]
            for number in numbers_in(record):
                written = spellings(number) + spellings(number * step) if number else []  # a token begins with nothing
                found[names.get(record.kind, "values")] += [form for form in written if len(form) >= TELLING_BYTES]
    return found


def words() -> list[bytes]:
    types = sorted({one.name for name in names() for one in protocol(name).messages})
    forms = [*(packed_type(kind) for kind in types), *(name.encode() for name in [*types, *KIND_NAMES])]
    return [form for form in forms if len(form) >= TELLING_BYTES]


def found_in(frames: list[Seen], secret: dict[str, list[bytes]]) -> dict[str, int]:
    hidden = [frame.body for frame in frames if frame.kind not in IN_CLEAR]
    return search((frame.body for frame in frames), secret) | search(hidden, {"words": words()})
