"""Folders of finished runs with one file changed, and every command that reads them.

Eleven mutations of each file. Whatever a file has become: a command ends with a code of the contract, within
`GUARD_S`, without a trace of Python; and `verify` finds each changed byte of a ledger, which all claims depend on.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

import p2pdp
from p2pdp.cli.main import main
from p2pdp.files.spec import spec_to_toml
from tests.campaigns.oracle import Violation
from tests.campaigns.running import Campaign, Judged
from tests.campaigns.specs import SAMPLES, covered, prepared, specs_of

CODES: Final = frozenset({0, 2, 4, 5, 6})
GUARD_S: Final = 60
HUGE_BYTES: Final = 1 << 24
COMMANDS: Final = ("verify", "audit", "views", "export", "report", "status", "attack", "resume")
OPTIONAL: Final = ("delete", "empty")  # a private ledger may be absent

Mutate = Callable[[Path, Path, Random], None]


class _Late(Exception):
    """A command that did not end in time."""


def _truncate(file: Path, _root: Path, dice: Random) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: dice.randrange(len(data))])


def _extend(file: Path, _root: Path, dice: Random) -> None:
    file.write_bytes(file.read_bytes() + dice.choice((bytes(40), dice.randbytes(40))))


def _flip(file: Path, _root: Path, dice: Random) -> None:
    data = bytearray(file.read_bytes())
    data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    file.write_bytes(data)


def _swap(file: Path, root: Path, dice: Random) -> None:
    other = dice.choice([one for one in _files(root) if one != file])
    mine, theirs = file.read_bytes(), other.read_bytes()
    file.write_bytes(theirs)
    other.write_bytes(mine)


def _duplicate(file: Path, _root: Path, dice: Random) -> None:
    data = file.read_bytes()
    at = dice.randrange(len(data))
    file.write_bytes(data[:at] + data)


def _link(file: Path, root: Path, dice: Random) -> None:
    file.unlink()
    file.symlink_to(dice.choice((Path("/dev/zero"), Path("/dev/null"), root, file, Path("/proc/self/mem"))))


def _huge(file: Path, _root: Path, _dice: Random) -> None:
    with file.open("r+b") as stream:
        stream.truncate(HUGE_BYTES)


def _others(file: Path, root: Path, _dice: Random) -> None:
    file.write_bytes((finished("walk.sum", 2) / file.relative_to(root)).read_bytes())


def _random(file: Path, _root: Path, dice: Random) -> None:
    file.write_bytes(dice.randbytes(dice.choice((1, 100, 5000))))


MUTATIONS: Final[dict[str, Mutate]] = {
    "truncate": _truncate,
    "extend": _extend,
    "flip": _flip,
    "swap": _swap,
    "duplicate": _duplicate,
    "empty": lambda file, _root, _dice: file.write_bytes(b"") and None,
    "delete": lambda file, _root, _dice: file.unlink(),
    "link": _link,
    "huge": _huge,
    "other": _others,
    "random": _random,
}


def _files(root: Path) -> list[Path]:
    return [place for place in sorted(root.rglob("*")) if place.is_file()]


@cache
def finished(protocol: str, seed: int = 1) -> Path:
    """The folder of a finished run, made once in this process."""
    place = Path(tempfile.mkdtemp(prefix="p2pdp-campaign-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    spec = place / "spec.toml"
    text = spec_to_toml(prepared(specs_of(protocol)[1 % len(specs_of(protocol))]).spec)
    spec.write_text(text.replace("seed = 1\n", f"seed = {seed}\n") + "\n")
    for name in ("walk_sgd.csv",):
        shutil.copy(SAMPLES / name, place / name)
    p2pdp.simulate(p2pdp.load_spec(spec, ["privacy.delta=1e-5"]), place / "run")
    return place / "run"


@contextlib.contextmanager
def _guarded() -> Iterator[None]:
    def late(*_: object) -> None:
        raise _Late

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(GUARD_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def command(*arguments: str) -> tuple[int | str, str]:
    """Return the exit code of a command, or what went wrong otherwise, and all that it said."""
    said = io.StringIO()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    code: Any
    try:
        with _guarded(), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = main(list(arguments))
    except SystemExit as error:
        code = error.code
    except _Late:
        code = "late"
    except BaseException as error:  # noqa: BLE001 - that there is none is what is tested
        code = type(error).__name__
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return code, said.getvalue()


def arguments_of(name: str, run: Path, out: Path) -> list[str]:
    more = {
        "export": ["--out", str(out / "export")],
        "report": ["--out", str(out / "r.html")],
        "attack": ["--observer", "0"],
    }
    return [name, str(run), *more.get(name, [])]


def mutated(protocol: str, seed: int) -> Judged:
    """Change one file of a copy, in one way, and run two commands: `verify`, and one more that is thrown."""
    dice = Random(f"{protocol}/{seed}")  # noqa: S311 - what is thrown is no secret
    origin = finished(protocol)
    found: list[Violation] = []
    with tempfile.TemporaryDirectory(prefix="p2pdp-campaign-") as folder:
        run = Path(folder) / "run"
        shutil.copytree(origin, run)
        file = dice.choice(_files(run))
        name = str(file.relative_to(run))
        kind = dice.choice([one for one in MUTATIONS if one != "other" or protocol == "walk.sum"])
        if kind == "other" and not (finished("walk.sum", 2) / name).is_file():
            kind = "random"
        before = file.read_bytes()
        MUTATIONS[kind](file, run, dice)
        story = f"{protocol} seed {seed}: {kind} {name}"
        changed = kind == "link" or not file.is_file() or file.read_bytes() != before
        for verb in ("verify", dice.choice(COMMANDS[1:])):
            code, said = command(*arguments_of(verb, run, Path(folder)))
            if code not in CODES or "Traceback" in said or "defect" in said:
                found.append(Violation("command", f"{verb} ended with {code}: {said[-300:]}"))
            if verb == "verify" and code == 0 and changed and _matters(name, kind):
                found.append(Violation("missed", f"verify found nothing after {kind} of {name}"))
    return Judged(found, None, story, Counter({kind: 1, "commands": 2}))


def _matters(name: str, kind: str) -> bool:
    if name.endswith("private.ledger"):
        return kind not in OPTIONAL and kind != "link"
    return name.endswith("view.ledger")


FOLDERS = Campaign("folders", "folders of runs with a changed file, and every command on them", covered, mutated)
