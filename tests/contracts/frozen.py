"""Digests of everything that simulated runs leave behind, so that moving code can be seen to change nothing.

    python -m tests.contracts.frozen            compares all samples and small specs, for all seeds, in all parts
    python -m tests.contracts.frozen --write    records new digests, where a change is meant
    python -m tests.contracts.frozen NAME ...   looks at these specs only

A commit that records new digests says what changed in what users see. Numbers come from libraries whose last bits
depend on the processor: `probe` is the digest of some of them, and the file holds a record for each probe. After a
change the records of other processors are out of date, so `--write` drops them.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import numpy as np

import p2pdp
from p2pdp.cli.main import main
from p2pdp.core.errors import P2pdpError
from p2pdp.core.spec import Spec
from p2pdp.files.spec import load_spec, parse_spec, spec_to_toml
from p2pdp.sim.faults import Crash, Faults
from tests.support.sources import TOP

FILE: Final = Path(__file__).with_name("frozen.json")
SEEDS: Final = (1, 2, 3)
SLOW: Final = ("faulty", "target")  # most of the time that samples take
_GAUSSIAN: Final = 'mechanism = "gaussian"\nsigma = 2.0'
_SHARED: Final = 'mechanism = "gaussian"\nsigma = 1.0\npair_sigma = 4.0'
_LAPLACE: Final = 'mechanism = "laplace"\nepsilon = 1.0'
_NUMBERS: Final = '[data]\nkind = "uniform"\nclip = [0.0, 1.0]'
_CATEGORIES: Final = '[data]\nkind = "categories"\n[task]\nkind = "histogram"\ncategories = 3'
_ANSWERS: Final = 'mechanism = "randomized_response"\nepsilon = 1.0'

_PLACE: Final = re.compile(r"/\S*/(?=run|faulty)")  # the temporary folder

Digests = dict[str, str]


def _spec(protocol: str, n: int, graph: str, part: str, noise: str = _GAUSSIAN, data: str = _NUMBERS) -> str:
    return (
        f'[run]\nprotocol = "{protocol}"\nnodes = {n}\nseed = 1\npatience_s = 3.0\n[graph]\nkind = {graph}\n'
        f"{part}\n[noise]\n{noise}\n{data}\n[privacy]\ndelta = 1e-5\n"
    )


_WALK: Final = '[walk]\norder = "random"\nhops = 15'
_SMALL: Final = {
    "ring": _spec("walk.sum", 4, '"ring"', '[walk]\norder = "ring"\nlaps = 2'),
    "ring_tokens": _spec("walk.sum", 5, '"ring"', '[walk]\norder = "ring"\nlaps = 3\ntokens = 2', _LAPLACE),
    "complete": _spec("walk.sum", 5, '"complete"', _WALK + "\ntokens = 2"),
    "complete_laplace": _spec("walk.sum", 5, '"complete"', _WALK, _LAPLACE),
    "sparse": _spec("walk.sum", 6, '"regular"\ndegree = 3', _WALK),
    "path": _spec("walk.sum", 4, '"path"', _WALK + "\ntokens = 2"),
    "bare": _spec("walk.sum", 3, '"complete"', _WALK, 'mechanism = "none"'),
    "histogram": _spec("walk.histogram", 5, '"complete"', _WALK, _ANSWERS, _CATEGORIES),
    "ring_histogram": _spec("walk.histogram", 4, '"ring"', '[walk]\norder = "ring"\nlaps = 2', _ANSWERS, _CATEGORIES),
    "average": _spec("gossip.average", 8, '"hypercube"', "[gossip]\nrounds = 5"),
    "accelerated": _spec("gossip.average", 6, '"ring"', '[gossip]\nrounds = 6\naccelerated = true\npublish = "one"'),
    "published": _spec("gossip.average", 5, '"star"', '[gossip]\nrounds = 3\npublish = "all"'),
    "message_noise": _spec("gossip.average", 6, '"path"', "[gossip]\nrounds = 4\nmessage_sigma = 0.5"),
    "changing": _spec("gossip.average", 6, '"erdos_renyi"\nchanging = true\nprobability = 0.6', "[gossip]\nrounds = 4"),
    "laplace_gossip": _spec("gossip.average", 5, '"ring"', "[gossip]\nrounds = 3", _LAPLACE),
    "shared": _spec("gossip.average", 6, '"ring"', "[gossip]\nrounds = 5", _SHARED),
    "shared_pairs": _spec("gossip.randomized", 5, '"ring"', "[gossip]\nactivations = 14", _SHARED),
    "randomized": _spec("gossip.randomized", 5, '"ring"', "[gossip]\nactivations = 14"),
    "reports": _spec("shuffle.all", 6, '"complete"', "[shuffle]\nrounds = 4", _ANSWERS, _CATEGORIES),
    "reports_lazy": _spec("shuffle.all", 6, '"ring"', "[shuffle]\nrounds = 5\nstay = 0.3", _ANSWERS, _CATEGORIES),
    "single": _spec("shuffle.single", 6, '"complete"', "[shuffle]\nrounds = 4", _ANSWERS, _CATEGORIES),
}


def specs() -> dict[str, Spec]:
    samples = {f"sample:{path.stem}": load_spec(path) for path in sorted((TOP / "deploy" / "samples").glob("*.toml"))}
    samples = {name: spec for name, spec in samples.items() if spec.privacy.unit == "user"}  # as far as recorded
    return {**samples, **{f"small:{name}": parse_spec(text, None) for name, text in _SMALL.items()}}


def probe() -> str:
    """Return the digest of what this machine's libraries make of some sums, products and roots."""
    from scipy.special import log_ndtr

    numbers = np.random.default_rng(1).normal(size=(120, 120))
    parts = (numbers @ numbers, np.linalg.eigvalsh(numbers @ numbers.T), np.exp(numbers), log_ndtr(numbers))
    whole = b"".join(np.ascontiguousarray(part).tobytes() for part in (*parts, np.fft.rfft(numbers[0])))
    return _digest(whole)


def digests(spec: Spec, seed: int, without: Collection[str] = ()) -> Digests:
    """Return the digests of what one run and its commands leave and print; parts of `SLOW` can be left out."""
    seeded = replace(spec, run=replace(spec.run, seed=seed))
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        found = dict(_of_run(seeded, place / "run"))
        if "faulty" not in without:
            found["faulty"] = _attempt(lambda: _of_faulty(seeded, place / "faulty"))
        found["plan"] = _attempt(lambda: p2pdp.plan(seeded).to_json())
        if "target" not in without:
            found["target"] = _attempt(lambda: p2pdp.plan(seeded, 1.0).to_json())
        words = ["plan", str(_written(seeded, place)), "--set", "privacy.delta=1e-4"]
        found["terminal plan"] = _attempt(lambda: _printed(words))
        found["fast"] = _attempt(lambda: p2pdp.simulate(seeded, trials=3, fast=True).to_json())
    return found


def _of_run(spec: Spec, place: Path) -> Iterator[tuple[str, str]]:
    p2pdp.simulate(spec, place)
    for name in ("result.json", "audit.json", "report.html"):
        yield name, _digest(_bytes_of(place / name))
    yield "ledgers", _folder(place)
    yield "verify", _attempt(lambda: p2pdp.verify(place).to_json())
    yield "views", _attempt(lambda: list(p2pdp.views(place)))
    yield "colluders", _attempt(lambda: p2pdp.audit(place, [1], 1e-3).to_json())
    for observer in (0, "curator"):
        yield f"attack {observer}", _attempt(lambda: p2pdp.attack(place, observer).to_json())  # noqa: B023
    for words in (["audit", str(place)], ["verify", str(place)], ["attack", str(place), "--observer", "1"]):
        yield f"terminal {words[0]}", _attempt(lambda: _printed(words).replace(str(place), "RUN"))  # noqa: B023


def _of_faulty(spec: Spec, place: Path) -> Any:
    faults = Faults(loss=0.05, duplication=0.05, crashes=(Crash(1, at_s=0.2, down_s=None), Crash(2, 0.2, 0.5)))
    result = p2pdp.simulate(spec, place, faults=faults).to_json()
    del result["folder"]
    return result, p2pdp.audit(place, allow_missing=True).to_json(), _folder(place)


def _written(spec: Spec, place: Path) -> Path:
    file = place / "spec.toml"
    file.write_text(spec_to_toml(spec))
    return file


def _folder(place: Path) -> str:
    files = sorted(
        path for path in place.rglob("*") if path.suffix in (".ledger", ".toml") or path.name == "roster.json"
    )
    return _digest(b"".join(f"{path.relative_to(place)}\n".encode() + _bytes_of(path) for path in files))


def _bytes_of(path: Path) -> bytes:
    """Return the contents of a file; specs name data files by where the repository lies."""
    return path.read_bytes().replace(str(TOP).encode(), b"TOP")


def _printed(words: list[str]) -> str:
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        code = main(words)
    return f"{code}\n{text.getvalue()}"


def _attempt(work: Callable[[], Any]) -> str:
    """Return the digest of a document, or of the refusal in its place."""
    try:
        return _digest(json.dumps(work(), sort_keys=True, default=str).replace(str(TOP), "TOP").encode())
    except P2pdpError as error:
        return _digest(f"{type(error).__name__}: {_PLACE.sub('', str(error))}".encode())


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def all_recorded() -> dict[str, dict[str, Digests]]:
    """Return the digests of every run, for each processor on which they were recorded."""
    document: dict[str, dict[str, Digests]] = json.loads(FILE.read_text())
    return document


def recorded() -> dict[str, Digests]:
    """Return the digests that were recorded on a processor which calculates like this one; none if there are none."""
    return all_recorded().get(probe(), {})


def changed(before: Digests, now: Digests) -> list[str]:
    return [key for key in sorted(before.keys() | now.keys()) if before.get(key) != now.get(key)]


def _work(job: tuple[str, int]) -> tuple[str, Digests]:
    name, seed = job
    return f"{name} {seed}", digests(specs()[name], seed)


def compared(names: list[str], *, write: bool) -> int:
    """Compare or record; return how many runs differ."""
    jobs = [(name, seed) for name in names for seed in SEEDS]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        found = dict(pool.map(_work, jobs))
    before = recorded()
    differing = {run: other for run, now in found.items() if (other := changed(before.get(run, {}), now))}
    for run, keys in differing.items():
        print(f"{run}: {', '.join(keys)}")
    if write:
        FILE.write_text(json.dumps({probe(): {**before, **found}}, indent=1, sort_keys=True) + "\n")
    elif not before:
        print("no digests were recorded with libraries and a processor that calculate like these")
    return len(differing)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    chosen = [one for one in arguments if not one.startswith("--")] or list(specs())
    sys.exit(min(1, compared(chosen, write="--write" in arguments)))
