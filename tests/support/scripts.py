"""Scripts of commands over a simulated world, with the output that is expected below each command.

A block of a script is a command, a line `----` and its output; `#` begins a comment, and a blank line ends a block.
The world is the simulator's: real hosts, machines, services, channels and ledgers. Every frame takes one millisecond,
so times in the output can be followed by hand. Commands:

    run protocol=… users=… graph=… [seed=…] [patience=…] [hops=…] …    makes a world; nothing happens yet
    show TYPE …                       these messages are printed too, beside `SHOWN`
    until PEER sends|gets|misses TYPE runs until a record says so, or until a frame that was to be dropped is
    advance SECONDS                   lets time pass
    finish                            runs until all are done, or until nothing happens any more
    crash PEER …                      stops these processes now
    crash PEER before|on|after TYPE   stops it when it sends such a message: with nothing on its disk, with the
                                      records on its disk and no frame on its way, or with both
    rollback PEER RECORDS             its view holds only so many records again
    restart PEER …                    starts them again from their disks
    drop|double|delay PEER PEER TYPE [SECONDS]   the next frame that carries it is lost, comes twice, or comes later
    cut PEER … / heal                 no frame passes between these peers and the others / all pass again
    state                             each process, and how far it has come by its own ledger
    ledger PEER                       what it recorded, without values
    faults                            by peer and code
    account                           what the verified ledgers of the run say, once it has finished
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from p2pdp.auditor.verify import verify
from p2pdp.core import messages
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user, peer_name
from p2pdp.core.messages import OUT, TOKEN, TOTAL
from p2pdp.ledger import records
from p2pdp.ledger.records import (
    CLOSED,
    KIND_NAMES,
    OWN,
    PUBLISHED,
    RECEIVED,
    SENT,
    Record,
    carries_message,
    public_message,
)
from p2pdp.sim.process import Process
from tests.support.outcomes import outcome
from tests.support.run_oracle import evidence_of, judge
from tests.support.script_world import Armed, Rule, ScriptWorld, Until

_STAGES: Final = (
    ("has its seat", lambda record: record.kind == records.OPENED),
    ("ready", lambda record: _is(record, SENT, messages.READY)),
    ("going", lambda record: _is(record, RECEIVED, messages.GO) or _is(record, SENT, messages.GO)),
    (
        "has the result",
        lambda record: _is(record, RECEIVED, messages.RESULT) or _is(record, PUBLISHED, messages.RESULT),
    ),
    ("closed", lambda record: record.kind == CLOSED),
)
_NOISE: Final = {
    "walk": 'mechanism = "gaussian"\nsigma = 2.0\n[data]\nkind = "uniform"\nclip = [0.0, 1.0]\n',
    "gossip": 'mechanism = "gaussian"\nsigma = 1.0\n[data]\nkind = "uniform"\nclip = [0.0, 1.0]\n',
    "shuffle": 'mechanism = "randomized_response"\nepsilon = 3.0\n[data]\nkind = "categories"\n'
    '[task]\nkind = "histogram"\ncategories = 3\n',
}
_RUN_KEYS: Final = {"users": "nodes", "seed": "seed", "patience": "patience_s", "min": "min_nodes"}


def spec_of(terms: dict[str, str]) -> str:
    """Return the spec that the words after `run` describe; words of no common section are the family's own."""
    terms = {"seed": "1", "patience": "2.0"} | terms
    protocol, graph = terms.pop("protocol"), terms.pop("graph")
    family = protocol.partition(".")[0]
    lines = ["[run]", f'protocol = "{protocol}"']
    lines += [f"{key} = {terms.pop(word)}" for word, key in _RUN_KEYS.items() if word in terms]
    lines += ["[graph]", f'kind = "{graph}"', *([f"degree = {terms.pop('degree')}"] if "degree" in terms else [])]
    lines += [
        f"[{family}]",
        *(['order = "ring"' if graph == "ring" else 'order = "random"'] if family == "walk" else []),
    ]
    lines += [f"{key} = {value}" for key, value in terms.items()]
    return "\n".join([*lines, "[noise]", _NOISE[family], "[privacy]", "delta = 1e-5", ""])


def _is(record: Record, kind: int, message: str) -> bool:
    return record.kind == kind and carries_message(record) and public_message(record).type == message


class Script:
    """Runs commands one after the other."""

    def __init__(self) -> None:
        self._made: ScriptWorld | None = None

    @property
    def world(self) -> ScriptWorld:
        assert self._made is not None, "a script begins with run"
        return self._made

    def execute(self, command: str) -> str:
        """Return the output of a command."""
        name, *words = command.split()
        lines = getattr(self, f"_{name}")(words)
        told = [] if self._made is None else self.world.lines
        text = "\n".join([*told, *(lines or [])])
        told.clear()
        return text or "ok"

    def _run(self, words: Sequence[str]) -> None:
        terms = dict(word.split("=", 1) for word in words)
        seed = int(terms.get("seed", 1))
        self._made = ScriptWorld(spec_of(terms), seed)

    def _show(self, words: Sequence[str]) -> None:
        self.world.shown.update(words)

    def _until(self, words: Sequence[str]) -> list[str]:
        peer, verb, kind = words
        until = self.world.until = Until(_peer(peer), verb, kind)
        came = self.world.move_on(lambda: until.hit)
        self.world.until = None
        return [] if came else [f"{' '.join(words)}: never"]

    def _advance(self, words: Sequence[str]) -> None:
        until_s = self.world.now_s + float(words[0])
        self.world.move_on(lambda: False, until_s)
        self.world.now_s = until_s

    def _finish(self, _words: Sequence[str]) -> list[str]:
        finished = self.world.move_on(lambda: self.world.finished)
        return ["finished" if finished else "stands still"]

    def _crash(self, words: Sequence[str]) -> None:
        if len(words) == 3 and words[1] in ("before", "on", "after"):
            self.world.armed.append(Armed(_peer(words[0]), words[1], words[2]))
            return
        for word in words:
            self.world.stop(self.world.processes[_peer(word)])

    def _rollback(self, words: Sequence[str]) -> None:
        disk = self.world.processes[_peer(words[0])].disk
        self.world.forgotten[_peer(words[0])] = bytes(disk.view), bytes(disk.private)
        disk.roll_back(int(words[1]))

    def _restart(self, words: Sequence[str]) -> None:
        for word in words:
            self.world.start(self.world.processes[_peer(word)])

    def _rule(self, what: str, words: Sequence[str]) -> None:
        sender, receiver, kind, *seconds = words
        self.world.rules.append(Rule(what, _peer(sender), _peer(receiver), kind, *map(float, seconds)))

    def _drop(self, words: Sequence[str]) -> None:
        self._rule("drop", words)

    def _double(self, words: Sequence[str]) -> None:
        self._rule("double", words)

    def _delay(self, words: Sequence[str]) -> None:
        self._rule("delay", words)

    def _cut(self, words: Sequence[str]) -> None:
        self.world.cut = frozenset(map(_peer, words))

    def _heal(self, _words: Sequence[str]) -> None:
        self.world.cut = frozenset()

    # What is asked

    def _state(self, _words: Sequence[str]) -> list[str]:
        return [f"{peer_name(peer)!s:9}  {', '.join(self._state_of(process))}" for peer, process in self._processes()]

    def _processes(self) -> Iterator[tuple[Peer, Process]]:
        yield from sorted(self.world.processes.items(), key=lambda item: (is_user(item[0]), abs(item[0])))

    def _state_of(self, process: Process) -> Iterator[str]:
        host = process.host
        yield "down" if not process.up else "stopped" if host is not None and host.stopped else "up"
        written = records.read(bytes(process.disk.view)).records if process.disk.view else []
        stages = [name for name, reached in _STAGES if any(map(reached, written))]
        yield stages[-1] if stages else "has no seat"
        if host is not None and host.done:
            yield "done"
        out = [public_message(record).fields[0] for record in written if _is(record, RECEIVED, OUT)]
        if out:
            yield f"told that {', '.join(map(str, out))} is out"
        if is_user(process.peer):
            yield from (f"holds {self.world.names(item)} at step {step}" for item, step in _held(written))

    def _ledger(self, words: Sequence[str]) -> list[str]:
        process = self.world.processes[_peer(words[0])]
        lines = []
        for record in records.read(bytes(process.disk.view)).records:
            text = KIND_NAMES[record.kind]
            if carries_message(record):
                if record.kind == SENT:
                    text += f" to {peer_name(record.body[0])}"
                elif record.kind == RECEIVED:
                    text += f" from {peer_name(record.body[1])}"
                text += f": {self.world.words(public_message(record))}"
            lines.append(text)
        return lines

    def _faults(self, _words: Sequence[str]) -> list[str]:
        lines = []
        for peer, process in self._processes():
            counts = process.faults + Counter({} if process.host is None else process.host.fault_counts)
            lines += [f"{peer_name(peer)}: {kind} {count}" for kind, count in sorted(counts.items())]
        return lines or ["none"]

    def _account(self, _words: Sequence[str]) -> list[str]:
        """The oracle of walks recomputes every token; what other families published is read as results are."""
        world = self.world
        if world.run.spec.run.protocol.startswith("walk."):
            judged = judge(world, world.forgotten)
            found, paths = judged.verification, judged.path
            lines = [f"token {item} visited {' '.join(map(str, path))}" for item, path in sorted(paths.items())]
        else:
            evidence = evidence_of(world)
            found = verify(evidence)
            gathered = outcome(world.run, evidence.views, world.out)
            results = zip(sorted(gathered.finals), gathered.rows if gathered.rows is not None else (), strict=True)
            lines = [_weights(user, row) for user, row in results]
            lines = lines or [f"reports of {' '.join(map(str, sorted(gathered.counted)))}"]
        problems = [f"problem: {problem}" for problem in found.problems]
        out = f", excluded {' '.join(map(str, found.excluded))}" if found.excluded else ""
        return [*lines, f"ledgers {found.verified}{out}", *problems]


def _held(written: Sequence[Record]) -> list[tuple[int, int]]:
    """Return the items that came to a user, by its ledger, and that it has not passed on."""
    held: dict[int, int] = {}
    for record in written:
        if not carries_message(record) or (message := public_message(record)).type not in (TOKEN, TOTAL):
            continue
        item, step = message.fields
        if record.kind in (RECEIVED, OWN):
            held[item] = step
        elif record.kind == SENT:
            held.pop(item, None)
    return sorted(held.items())


def _weights(user: Peer, row: Any) -> str:
    """Return what a user's result of gossip is made of: the weight of each user's value."""
    return f"result of {user}: {' + '.join(f'{weight:.3f} of {peer}' for peer, weight in enumerate(row) if weight)}"


def _peer(word: str) -> Peer:
    return {"bootstrap": BOOTSTRAP, "curator": CURATOR}.get(word) or int(word)


def recorded(text: str) -> str:
    """Return a script with the outputs that its commands have now."""
    script = Script()
    blocks = []
    for block in text.strip().split("\n\n"):
        lines = block.partition("\n----")[0].split("\n")
        commands = [line for line in lines if not line.startswith("#")]
        output = [script.execute(command) for command in commands]
        blocks.append("\n".join([*lines, *(["----", *output] if output else [])]))
    return "\n\n".join(blocks) + "\n"
