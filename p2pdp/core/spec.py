"""The spec of a run as frozen values; `files/spec.py` reads and checks them.

Field names are those of the TOML file. A field that is None was not given and has no default of its own. The section
of a protocol family is declared by the family (`protocols/options.py`) and held in `Spec.options`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from p2pdp.core.claims import Unit

REAL_DATA: Final = ("csv", "npy", "parquet", "own")  # kinds of data that somebody has: never run on a seed


@dataclass(frozen=True, slots=True)
class RunPart:
    protocol: str
    nodes: int
    seed: int | None = None
    transport: str = "tcp"
    durability: str = "process"
    patience_s: float = 10.0
    min_nodes: int | None = None
    min_live: int | None = None
    enrol_timeout_s: float = 60.0
    expires: str | None = None
    audit: bool = True
    purpose: str | None = None

    @property
    def live_min(self) -> int:
        """Return how many users have to be left until the result is published, or the run is stopped."""
        if self.min_live is not None:
            return self.min_live
        return self.min_nodes if self.min_nodes is not None and self.min_nodes < self.nodes else 1


@dataclass(frozen=True, slots=True)
class TransportPart:
    host: str | None = None
    port: int | None = None
    user: str | None = None
    password_file: str | None = None
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class GraphPart:
    kind: str
    degree: int | None = None
    probability: float | None = None
    radius: float | None = None
    rows: int | None = None
    columns: int | None = None
    path: str | None = None
    weights: str | None = None
    changing: bool = False
    public: bool | None = None
    own: Any = field(default=None, repr=False, compare=False)  # the caller's edges; a run's folder has a file


@dataclass(frozen=True, slots=True)
class NoisePart:
    mechanism: str
    sigma: float | None = None
    epsilon: float | None = None
    delta: float | None = None
    closing: bool = True
    share: bool = False
    encoding: str | None = None
    sampler: str = "exact"
    pair_sigma: float | None = None


@dataclass(frozen=True, slots=True)
class DataPart:
    kind: str
    clip: tuple[float, float] | None = None
    path: str | None = None
    columns: tuple[str | int, ...] | None = None
    header: bool | None = None
    separator: str | None = None
    target: str | int | None = None
    rule: str | None = None
    standardize: dict[str, Any] | None = None
    target_range: tuple[float, float] | None = None
    unit_norm: bool = False
    split_by: str | int | None = None
    partition: str | None = None  # even
    alpha: float | None = None
    column: str | int | None = None
    public: str | None = None
    own: Any = field(default=None, repr=False, compare=False)  # the caller's rows: in no file, never sent
    public_own: Any = field(default=None, repr=False, compare=False)  # the caller's public rows, likewise

    @property
    def is_divided(self) -> bool:
        """Return whether rows become those of users in another way than in their order."""
        return self.partition in ("by", "dirichlet")

    @property
    def groups(self) -> tuple[str, str | int] | None:
        """Return the key that names the column whose values say whose a row is, and that column; None without one."""
        if self.partition == "by" and self.column is not None:
            return "column", self.column
        return None if self.split_by is None else ("split_by", self.split_by)


@dataclass(frozen=True, slots=True)
class TaskPart:
    kind: str
    categories: int | None = None
    clip: float | None = None
    rate: float | None = None
    rounds: int | None = None
    regularization: float | None = None
    batch: int | None = None
    test: float | None = None
    radius: float | None = None
    schedule: str = "constant"
    averaging: str = "last"
    intercept: bool = True
    model: str | None = None
    loss: str | None = None
    start: int | None = None
    own: Any = field(default=None, repr=False, compare=False)  # the caller's objective: in no file, never sent


@dataclass(frozen=True, slots=True)
class PrivacyPart:
    delta: float | None = None
    unit: Unit = Unit.USER
    colluders: tuple[int, ...] = ()
    budget: float | None = None
    colluders_max: int = 0


@dataclass(frozen=True, slots=True)
class AuditPart:
    key: str | None = None  # the auditor's public key, 64 hexadecimal digits


@dataclass(frozen=True, slots=True)
class Spec:
    run: RunPart
    graph: GraphPart
    noise: NoisePart
    data: DataPart
    task: TaskPart
    privacy: PrivacyPart = field(default_factory=PrivacyPart)
    transport: TransportPart = field(default_factory=TransportPart)
    audit: AuditPart = field(default_factory=AuditPart)
    options: Any = None  # the section that the protocol owns, if it owns one

    def __repr__(self) -> str:
        kinds = ", ".join(f"{name}={getattr(self, name).kind}" for name in ("graph", "data", "task"))
        return f"Spec({self.run.protocol}, nodes={self.run.nodes}, {kinds}, noise={self.noise.mechanism})"
