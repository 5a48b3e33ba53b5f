"""The samples that come with the package, in `p2pdp/samples/`: each a spec that runs, plans and audits as it is.

A sample begins with comment lines that say what it shows. `models/` holds those that learn a torch module and need the
extra `torch`. `nodes/` holds what a run across machines needs: its spec and
the configuration of a node, whose data are files of their owners and do not come along.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from p2pdp.core.errors import UsageError
from p2pdp.core.readers import suggestion

SAMPLES: Final = Path(__file__).parent.parent / "samples"
NODE: Final = "node"
"""The name of the sample that is no spec but the configuration of a node."""
CLINIC: Final = "clinic"
"""Another one, for a run that protects records."""
CLINICS: Final = "clinics"
"""That run."""


@dataclass(frozen=True, slots=True)
class Sample:
    name: str
    path: Path

    @property
    def text(self) -> str:
        return self.path.read_text("utf-8")

    @property
    def document(self) -> dict[str, Any]:
        return tomllib.loads(self.text)

    @property
    def shows(self) -> str:
        """Return what the sample shows: the comment before its first section."""
        lines = self.text.split("\n[", 1)[0].splitlines()
        return " ".join(line.removeprefix("#").strip() for line in lines if line.startswith("#"))

    @property
    def rows(self) -> list[Path]:
        """Return files of made-up rows of owners, where the sample has such: for several machines."""
        return sorted(self.path.parent.glob("clinics/*.csv")) if self.name in (CLINICS, CLINIC) else []

    def to_json(self) -> dict[str, Any]:
        run = self.document["run"]
        return {
            "name": self.name,
            "protocol": run["protocol"],
            "nodes": run["nodes"],
            "shows": self.shows,
            "file": str(self.path),
        }


def samples() -> list[Sample]:
    """Return the samples that are specs, in the order of their protocols."""
    across = map(_across, ("hours", CLINICS))
    found = [Sample(path.stem, path) for path in (*SAMPLES.glob("*.toml"), *SAMPLES.glob("models/*.toml"), *across)]
    return sorted(found, key=lambda one: (one.document["run"]["protocol"], one.name))


def _across(name: str) -> Path:
    """Return the file of a sample for several machines."""
    return SAMPLES / "nodes" / f"{name}.toml"


def sample(name: str) -> Sample:
    """Return the sample of this name, that of a node's configuration included; else raise `UsageError`."""
    known = {one.name: one for one in samples()} | {name: Sample(name, _across(name)) for name in (NODE, CLINIC)}
    if name not in known:
        raise UsageError(f"{name}: there is no such sample{suggestion(name, known)}")
    return known[name]
