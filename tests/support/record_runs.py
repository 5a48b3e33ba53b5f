"""Small runs that protect records: each protocol that can, on a table in which users have different numbers of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from p2pdp.core.claims import Unit
from p2pdp.core.spec import Spec
from p2pdp.files.spec import load_spec
from p2pdp.protocols import ours, protocol

ROWS: Final = (7, 8, 7, 8)  # of thirty rows, as a table is dealt to four users
CATEGORIES: Final = 3
_PARTS: Final = {
    "walk": 'order = "random"\nhops = 9',
    "gossip.average": "rounds = 3",
    "gossip.randomized": "activations = 9",
    "gossip.sgd": "rounds = 1",
    "shuffle": "rounds = 3\nstay = 0.25",
    "pairwise": 'masks = "uniform"',
}
GAUSSIAN: Final = 'mechanism = "gaussian"\nsigma = 2.0'
NOTHING: Final = 'mechanism = "none"'
ANSWERS: Final = 'mechanism = "randomized_response"\nepsilon = 1.5'


def learns(name: str) -> bool:
    return "task.clip" in protocol(name).keys


def protecting_records() -> list[str]:
    """Return the protocols that can protect records and compute what is known without them; not those that learn."""
    return [name for name in ours() if Unit.RECORD in protocol(name).units and not learns(name)]


def values(task: str) -> list[float]:
    chance = np.random.default_rng(4)
    drawn = chance.integers(CATEGORIES, size=sum(ROWS)) if task == "histogram" else chance.uniform(0.0, 24.0, sum(ROWS))
    return [float(value) for value in drawn]


def record_spec(place: Path, name: str, noise: str = "", *overrides: str) -> Spec:
    """Return a spec of this protocol, with its data in a file beside it."""
    task = "histogram" if "histogram" in protocol(name).tasks and name != "pairwise.sum" else "mean"
    answers = "randomized_response" in protocol(name).tasks.get(task, ()) and not name.startswith("walk")
    family = name.partition(".")[0]
    (place / "rows.csv").write_text("value\n" + "".join(f"{value!r}\n" for value in values(task)))
    data = "" if task == "histogram" else "clip = [0.0, 24.0]\n"
    file = place / "spec.toml"
    file.write_text(
        f'[run]\nprotocol = "{name}"\nnodes = 4\n[graph]\nkind = "complete"\n'
        f"[{family}]\n{_PARTS.get(name) or _PARTS[family]}\n[noise]\n{noise or (ANSWERS if answers else GAUSSIAN)}\n"
        f'[data]\nkind = "csv"\npath = "rows.csv"\n{data}[task]\nkind = "{task}"\n'
        + (f"categories = {CATEGORIES}\n" if task == "histogram" else "")
        + ("clip = 1.0\nrate = 0.1\n" if learns(name) else "")
        + ("rounds = 2\n" if name == "gossip.sgd" else "")
        + '[privacy]\ndelta = 1e-5\nunit = "record"\n'
    )
    return load_spec(file, overrides)
