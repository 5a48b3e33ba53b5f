"""Runs, sweeps and artifacts of them for tests."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import Any

import p2pdp
from p2pdp.files.artifact import SUMS_FILE, write_artifact
from p2pdp.runs.artifact import Artifact, make_artifact
from tests.support.small import RING, contents, recorded, spec_file

HOURS = (3.0625, 4.75, 1.125, 7.40625)
OWN = RING.replace("seed = 5\n", "").replace('kind = "uniform"', 'kind = "csv"\npath = "ward-seven-hours.csv"')
OWN = OWN.replace("clip = [0.0, 1.0]", "clip = [0.0, 10.0]").replace('"ring"', '"complete"', 1)
OWN = OWN.replace('order = "ring"\nlaps = 2', 'order = "random"\nhops = 12')


def own_spec(folder: Path, text: str = OWN) -> Path:
    """The file of a spec with data of somebody's own beside it."""
    (folder / "ward-seven-hours.csv").write_text("".join(f"{value}\n" for value in HOURS))
    return spec_file(folder, text)


def live(folder: Path) -> Path:
    """The folder of a live run on own data."""
    p2pdp.run(p2pdp.load_spec(own_spec(folder)), folder / "live")
    return folder / "live"


def swept(folder: Path, **more: Any) -> Path:
    described = {"base": spec_file(folder, RING), "seeds": 2, "grid": {"noise.sigma": [1.0, 3.0]}, "workers": 1}
    p2pdp.sweep(described | more, out=folder / "swept")
    return folder / "swept"


def made(place: Path, out: Path, *, auditor: bool = False, public_data: bool = False) -> Artifact:
    return make_artifact(place, out, auditor=auditor, public_data=public_data, key=None, clock=monotonic)


def simulated(folder: Path) -> Path:
    """The artifact of a simulated run, as a folder."""
    made(recorded(folder), folder / "artifact")
    return folder / "artifact"


def forged(place: Path, out: Path, name: str, old: bytes, new: bytes) -> Path:
    """An artifact in which a file was changed and all digests were made again."""
    files = contents(place)
    del files[SUMS_FILE]
    assert old in files[name]
    write_artifact(out, {**files, name: files[name].replace(old, new)}, secret=False)
    return out
