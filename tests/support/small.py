"""Small specs, and runs of them that take some milliseconds."""

from __future__ import annotations

from pathlib import Path

import p2pdp

_GAUSSIAN = 'mechanism = "gaussian"\nsigma = 2.0\n[data]\nkind = "uniform"\nclip = [0.0, 1.0]\n'
_LAPLACE = 'mechanism = "laplace"\nepsilon = 1.0\n[data]\nkind = "uniform"\nclip = [0.0, 1.0]\n'
_NOTHING = 'mechanism = "none"\n[data]\nkind = "uniform"\nclip = [0.0, 1.0]\n'
_ANSWERS = (
    'mechanism = "randomized_response"\nepsilon = 1.0\n'
    '[data]\nkind = "categories"\n[task]\nkind = "histogram"\ncategories = 3\n'
)


def _spec(protocol: str, n: int, graph: str, walk: str, noise: str) -> str:
    return (
        f'[run]\nprotocol = "{protocol}"\nnodes = {n}\nseed = 5\n'
        f"[graph]\nkind = {graph}\n[walk]\n{walk}\n[noise]\n{noise}[privacy]\ndelta = 1e-5\n"
    )


RING = _spec("walk.sum", 4, '"ring"', 'order = "ring"\nlaps = 2', _GAUSSIAN)
COMPLETE = _spec("walk.sum", 5, '"complete"', 'order = "random"\nhops = 20\ntokens = 2', _GAUSSIAN)
SPARSE = _spec("walk.sum", 6, '"regular"\ndegree = 3', 'order = "random"\nhops = 15\ntokens = 2', _LAPLACE)
BARE = _spec("walk.sum", 3, '"complete"', 'order = "random"\nhops = 9', _NOTHING)
HISTOGRAM = _spec("walk.histogram", 5, '"complete"', 'order = "random"\nhops = 12', _ANSWERS)
RING_HISTOGRAM = _spec("walk.histogram", 4, '"ring"', 'order = "ring"\nlaps = 2', _ANSWERS)
ALL = {
    "ring": RING,
    "complete": COMPLETE,
    "sparse": SPARSE,
    "bare": BARE,
    "histogram": HISTOGRAM,
    "ring_histogram": RING_HISTOGRAM,
}


def spec_file(folder: Path, text: str = RING) -> Path:
    path = folder / "spec.toml"
    path.write_text(text)
    return path


def recorded(folder: Path, text: str = RING, *overrides: str) -> Path:
    """The folder of a run of this spec."""
    place = folder / "run"
    p2pdp.simulate(p2pdp.load_spec(spec_file(folder, text), overrides), place)
    return place


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
