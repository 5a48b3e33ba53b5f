"""Coverage-guided fuzzing of everything that reads what others wrote: frames, payloads, rosters, ledgers, specs, files.

A target has inputs that are valid, a function that reads bytes, and the exceptions that it may raise. A case mutates
inputs for `EXECUTIONS` times; one that reaches lines of p2pdp in an order that none before it did is kept and mutated
further. `python -m tests.campaigns.decoders --count N` also keeps such inputs in `tests/campaigns/corpus`, which the
suite reads again, with whatever once failed.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Any, Final

from p2pdp.core.addresses import AddressError, split_address
from p2pdp.core.errors import P2pdpError, UsageError, VerificationFailed
from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.crypto import enrolment
from p2pdp.crypto.roster import Roster
from p2pdp.crypto.tokens import JoinToken
from p2pdp.files.artifact import read_artifact, write_artifact
from p2pdp.files.spec import parse_spec
from p2pdp.ledger import records
from p2pdp.ledger.journal import PRIVATE, Journal
from p2pdp.peer.link import Hello
from p2pdp.peer.payloads import Piece, parse_payload
from p2pdp.wire.codec import CodecError, pack, pack_value, unpack, unpack_message, unpack_value
from p2pdp.wire.frames import BOXED, FRAME_HEADER_BYTES, FrameReader, decode_frame, encode_frame
from tests.campaigns.oracle import Violation
from tests.campaigns.running import Campaign, Judged
from tests.campaigns.schedules import schedule
from tests.campaigns.specs import SAMPLES, covered, specs_of
from tests.campaigns.worlds import LyingWorld

CORPUS: Final = Path(__file__).parent / "corpus"
EXECUTIONS: Final = 300
INPUT_BYTES_MAX: Final = 8192
KEPT_MAX: Final = 40  # inputs of one target in the corpus
_PACKAGE: Final = str(Path(records.__file__).parents[1])
_WORDS: Final = (
    b"\xff" * 8,
    b"\x00" * 8,
    b"\x7f",
    b"\xc1",
    b"\xdd\xff\xff\xff\xff",
    b"\x9f",
    b"\xc6\x7f\xff\xff\xff",
    b"= [",
    b'"',
)


@dataclass(frozen=True)
class Target:
    """`fine` are the exceptions by which it refuses an input."""

    inputs: Callable[[], list[bytes]]
    read: Callable[[bytes], object]
    fine: tuple[type[Exception], ...]


@cache
def _finished() -> LyingWorld:
    world = schedule("walk.sum", 3, kinds=(), calm_network=True).world()
    world.run_to_end()
    return world


@cache
def _payloads() -> list[bytes]:
    found: list[bytes] = []
    for protocol in covered():
        world = schedule(protocol, 1, kinds=(), calm_network=True).world()
        world.run_to_end()
        for messages in world.oracle._sent.values():
            found += [message + value for message, value in messages[:2]]
    return found[:60]


def _ledger(data: bytes) -> None:
    contents = records.read(data)
    records.chain_problem(contents)
    records.whole_length(data)


def _frames(data: bytes) -> None:
    reader = FrameReader()
    for at in range(0, len(data), 7):
        for frame in reader.feed(data[at : at + 7]):
            decode_frame(frame)


def _framed() -> list[bytes]:
    frame = encode_frame(BOXED, 1, bytes(250))
    return [len(frame).to_bytes(4, "big") + frame, frame]


def _payload(data: bytes) -> None:
    payload = parse_payload(data)
    if payload.hello:
        Hello.unpacked(payload.hello)
    if payload.message:
        unpack_message(payload.message, payload.value[16:])


def _journal(data: bytes) -> None:
    """A node's own ledgers, one of which is damaged: the first byte says which one."""
    world = _finished()
    view, private = world.ledger(0), world.ledger(0, PRIVATE)
    journal = Journal(data[1:], private) if data[:1] == b"v" else Journal(view, data[1:])
    assert journal.private_state() is not None


def _journals() -> list[bytes]:
    world = _finished()
    return [b"v" + world.ledger(0), b"p" + world.ledger(0, PRIVATE)]


def _offer(data: bytes) -> None:
    key = _finished().processes[CURATOR].run_key
    reads = (
        lambda: enrolment.read_offer(data, key, bytes(32)),
        lambda: enrolment.read_application(data, key),
        lambda: enrolment.read_hello(data[FRAME_HEADER_BYTES:]),
    )
    for read in reads:
        try:
            read()
        except enrolment.EnrolmentError:
            continue


def _greeting() -> bytes:
    world = _finished()
    bootstrap, key = world.processes[BOOTSTRAP].identity, world.processes[0].run_key
    return enrolment.hello_frame(1, bytes(16), bootstrap.public, enrolment.hello_key(key).public)


def _token(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    JoinToken.from_text(text)


def _tokens() -> list[bytes]:
    token = JoinToken(address="h:1", bootstrap_public=bytes(32), number=1, secret=bytes(16))
    return [b"p2pdp1-abc#def", token.to_text().encode()]


def _halved(data: bytes) -> None:
    unpack_message(data[: len(data) // 2], data[len(data) // 2 :])


def _address(data: bytes) -> None:
    split_address(data.decode("utf-8", "replace"))


def _spec(data: bytes) -> None:
    parse_spec(data.decode("utf-8", "replace"), SAMPLES)


def _artifact(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "a.zip"
        place.write_bytes(data)
        read_artifact(place)


def _artifacts() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "a.zip"
        write_artifact(place, {"facts.json": b"{}", "spec.toml": b"[run]\n"}, secret=False)
        found = [place.read_bytes()]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("../x", b"1")
    damaged = [found[0][:at] + b"\xff\xff" + found[0][at + 2 :] for at in range(40, 60, 4)]
    return [*found, packed.getvalue(), *damaged]


def _roster_json(data: bytes) -> None:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return
    Roster.from_json(document)


TARGETS: Final[dict[str, Target]] = {
    "codec": Target(lambda: [pack([1, "a", [b"x", 1.5]]), pack({"a": 1})], unpack, (CodecError,)),
    "values": Target(lambda: [pack_value(5), pack_value([1, 2, b"a"]), pack_value(1.5)], unpack_value, (CodecError,)),
    "messages": Target(_payloads, _halved, (CodecError,)),
    "payloads": Target(
        lambda: [b"\x01" + bytes(7) + b"\x01" + bytes(24) + len(one).to_bytes(4, "big") + one for one in _payloads()]
        + [b"\x02" + bytes(32) + pack([1, bytes(16), 1, bytes(16), 1, b"", b"", bytes(24), bytes(24)])]
        + [b"\x12" + bytes(20) + Piece(1, 0, 9).packed() + b"some", b"\x16" + bytes(20) + Piece(1, 4, 0).packed()],
        _payload, (CodecError,),
    ),
    "frames": Target(_framed, _frames, (CodecError,)),
    "roster": Target(lambda: [_finished().roster.to_bytes()], Roster.from_bytes, (VerificationFailed,)),
    "roster_json": Target(
        lambda: [json.dumps(_finished().roster.to_json()).encode()], _roster_json, (VerificationFailed,)
    ),
    "enrolment": Target(lambda: [_greeting(), bytes(300), pack([1, 2, 3])], _offer, ()),
    "tokens": Target(_tokens, _token, (UsageError,)),
    "addresses": Target(lambda: [b"127.0.0.1:80", b"[::1]:7", b"host:70000"], _address, (AddressError,)),
    "ledger": Target(lambda: [_finished().ledger(0), _finished().ledger(0, PRIVATE)], _ledger, (VerificationFailed,)),
    "journal": Target(_journals, _journal, (VerificationFailed,)),
    "spec": Target(lambda: [text.encode() for name in covered() for text in specs_of(name)], _spec, (P2pdpError,)),
    "artifact": Target(_artifacts, _artifact, (VerificationFailed, UsageError)),
}  # fmt: skip


class Coverage:
    """Pairs of lines of p2pdp that came one after the other, as numbers."""

    def __init__(self) -> None:
        self.seen: set[int] = set()
        self._codes: dict[CodeType, int | None] = {}
        self._new: set[int] = set()

    @contextmanager
    def watching(self) -> Iterator[None]:
        self._new = set()
        before = sys.gettrace()
        sys.settrace(self._call)
        try:
            yield
        finally:
            sys.settrace(before)

    def learn(self) -> bool:
        """Return whether what was watched last is new, and remember it."""
        fresh = not self._new <= self.seen
        self.seen |= self._new
        return fresh

    def _call(self, frame: FrameType, _event: str, _argument: object) -> Any:
        code = frame.f_code
        number = self._codes.get(code, -1)
        if number == -1:
            ours = code.co_filename.startswith(_PACKAGE)
            number = self._codes[code] = len(self._codes) * 100_003 if ours else None
        if number is None:
            return None
        last = 0

        def line(inner: FrameType, event: str, _argument: object) -> Any:
            nonlocal last
            self._new.add(number + last * 3571 + inner.f_lineno)
            last = inner.f_lineno
            return line

        return line


def mutated(dice: Random, population: list[bytes]) -> bytes:
    data = bytearray(dice.choice(population))
    for _ in range(dice.choice((1, 1, 2, 4))):
        at, way = dice.randrange(len(data) + 1), dice.randrange(7)
        if way == 0 and data:
            data[at % len(data)] ^= 1 << dice.randrange(8)
        elif way == 1 and data:
            data[at % len(data)] = dice.randrange(256)
        elif way == 2:
            del data[at : at + dice.choice((1, 4, 30))]
        elif way == 3:
            data[at:at] = dice.choice(_WORDS)
        elif way == 4:
            other = dice.choice(population)
            start = dice.randrange(len(other) + 1)
            data[at:] = other[start:]
        elif way == 5:
            del data[at:]
        else:
            data[at:at] = data[at : at + dice.choice((1, 8, 60))]
    return bytes(data[:INPUT_BYTES_MAX])


def kept(name: str) -> list[bytes]:
    """Return the inputs of a target in the corpus."""
    return [place.read_bytes() for place in sorted((CORPUS / name).glob("*"))]


def problem(name: str, data: bytes) -> str | None:
    """Return what is wrong with how a target reads an input."""
    target = TARGETS[name]
    try:
        target.read(data)
    except target.fine:
        return None
    except Exception as error:  # noqa: BLE001 - that there is no other is what is tested
        return f"{type(error).__name__} for {data.hex()[:600]}"
    return None


def fuzz(name: str, seed: int, executions: int = EXECUTIONS) -> tuple[list[Violation], list[bytes], int]:
    """Return what went wrong, the inputs that reached something new, and how many lines were reached in pairs."""
    dice, coverage = Random(f"{name}/{seed}"), Coverage()  # noqa: S311 - inputs are no secret
    population = TARGETS[name].inputs() + kept(name)
    for data in population:
        with coverage.watching():
            wrong = problem(name, data)
        assert wrong is None, (name, wrong)
        coverage.learn()
    found, new = [], []
    for _ in range(executions):
        data = mutated(dice, population)
        with coverage.watching():
            wrong = problem(name, data)
        if coverage.learn():
            population.append(data)
            new.append(data)
        if wrong is not None:
            found.append(Violation("exception", wrong))
    return found, new, len(coverage.seen)


def _fuzzed(name: str, seed: int) -> Judged:
    found, new, reached = fuzz(name, seed)
    counts = Counter({"executions": EXECUTIONS, "new": len(new), name: reached})
    return Judged(found, None, f"{name} seed {seed}", counts)


DECODERS = Campaign(
    "decoders", "coverage-guided inputs for all that reads what others wrote", lambda: [*TARGETS], _fuzzed
)


def keep(name: str, inputs: list[bytes]) -> int:
    """Store inputs in the corpus, the shortest ones; return how many there are then."""
    place = CORPUS / name
    place.mkdir(parents=True, exist_ok=True)
    room = KEPT_MAX - len(list(place.glob("*")))
    for data in sorted((one for one in inputs if len(one) <= 1024), key=len)[: max(0, room)]:
        (place / blake2b(data, digest_size=8).hexdigest()).write_bytes(data)
    return len(list(place.glob("*")))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Let the corpus grow.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=EXECUTIONS, help="inputs tried of each target")
    given = parser.parse_args(arguments)
    failed = 0
    for name in TARGETS:
        found, new, reached = fuzz(name, given.seed, given.count)
        failed += len(found)
        print(
            f"{name}: {len(new)} new, {reached} pairs of lines, {len(found)} failed, {keep(name, new)} kept", flush=True
        )
        for violation in found[:3]:
            print(f"  {violation.what}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
