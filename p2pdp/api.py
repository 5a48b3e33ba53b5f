"""The interface for users: typed functions behind the commands of the same names.

    >>> import p2pdp
    >>> spec = p2pdp.load_spec("ring_sum.toml")
    >>> result = p2pdp.simulate(spec, out="my-run")
    >>> claims = p2pdp.audit("my-run").claims

Objects have fields named as in the JSON documents that the commands print.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p2pdp.core.spec import Spec

if TYPE_CHECKING:
    from p2pdp.report.result import Result
    from p2pdp.runs.account import Accounted
    from p2pdp.runs.attack import Attacked
    from p2pdp.runs.audit import Audited, Verified
    from p2pdp.runs.plan import Plan
    from p2pdp.sim.faults import Faults
    from p2pdp.tasks.objectives import Objective

Progress = Callable[[int, int], None]
OnEvent = Callable[[dict[str, Any]], None]


def load_spec(path: str | Path, overrides: Sequence[str] = ()) -> Spec:
    """Return the spec in a TOML file, checked; `overrides` are `section.key=value` texts."""
    from p2pdp.files.spec import load_spec as load

    return load(path, overrides)


def _checked(spec: Spec | str | Path, task: Objective | None) -> Spec:
    """Return the spec, checked as that of a file is, with the objective in place of its own."""
    from p2pdp.files.spec import validated
    from p2pdp.runs.prepared import with_task

    return validated(with_task(spec, task)) if isinstance(spec, Spec) else with_task(load_spec(spec), task)


def simulate(
    spec: Spec | str | Path,
    out: str | Path | None = None,
    trials: int | None = None,
    *,
    fast: bool = False,
    faults: Faults | None = None,
    progress: Progress | None = None,
    task: Objective | None = None,
    trace_wire: bool = False,
) -> Result:
    """Run a spec in the simulated world.

    `out` is the folder to be filled; without one nothing is written and nothing audited. Trial i runs on
    seed + i, synthetic data and random graphs included, and trial 0 leaves the ledgers. `progress` is told
    hops done and hops in all (with `fast`: trials). A spec without a seed runs on seed 0. Noise and routing
    come from the seed too, so all claims about a simulated run are hypothetical.

    With `fast` results are drawn straight from their law, which takes milliseconds a trial: there are
    no ledgers and so no audit and no baselines. `messages` then counts those that carry tokens and totals;
    `bytes` and `seconds` are 0, because no frame is made and no clock runs.

    `task` is an objective of your own (`p2pdp.Objective`), which takes the place of the spec's `[task] kind`.
    With `trace_wire` each peer's folder has a `wire.jsonl`: what each frame said that it received, without values.
    """
    from p2pdp.runs.simulate import simulate_spec

    loaded = _checked(spec, task)
    folder = None if out is None else Path(out)
    return simulate_spec(loaded, folder, trials, fast=fast, faults=faults, progress=progress, trace_wire=trace_wire)


def run(
    spec: Spec | str | Path,
    out: str | Path | None = None,
    *,
    nodes_per_process: int = 1,
    spawn: bool = False,
    on_event: OnEvent | None = None,
    task: Objective | None = None,
    trace_wire: bool = False,
) -> Result:
    """Run a spec on this machine, one operating-system process a user, and audits it.

    For more users than one machine has room for processes, `nodes_per_process` of them share one. With `spawn`
    each process is a fresh interpreter, instead of one forked from this, with which it would share memory.

    Noise and routing come from the operating system. `out` is the folder to be filled, by default
    ./p2pdp-RUN_ID. `on_event` is told of the run's life cycle: `{"event": "roster", …}`, never of messages.
    An interrupted run leaves a folder that `resume` continues.

    `task` is an objective of your own (`p2pdp.Objective`), which takes the place of the spec's `[task] kind`. Processes
    get it by being forked, so it goes neither with `spawn` nor to other machines, and `resume` needs it again.
    With `trace_wire` each peer's folder has a `wire.jsonl`: what each frame said that it received, without values.
    """
    from p2pdp.cluster.layout import Packing
    from p2pdp.runs.live import run_spec

    packing = Packing(nodes_per_process, spawn, trace_wire)
    loaded = _checked(spec, task)
    return run_spec(loaded, None if out is None else Path(out), on_event or _ignore, packing)


def resume(
    folder: str | Path,
    *,
    nodes_per_process: int | None = None,
    spawn: bool | None = None,
    on_event: OnEvent | None = None,
    task: Objective | None = None,
) -> Result:
    """Continue an interrupted run; of a finished one return the result again.

    Uses the process layout of the original run unless overridden.
    """
    from p2pdp.runs.live import resume as go_on

    return go_on(Path(folder), on_event or _ignore, nodes_per_process, spawn=spawn, task=task)


def _ignore(_event: dict[str, Any]) -> None:
    pass


async def simulate_async(
    spec: Spec | str | Path,
    out: str | Path | None = None,
    trials: int | None = None,
    *,
    fast: bool = False,
    faults: Faults | None = None,
    progress: Progress | None = None,
    task: Objective | None = None,
    trace_wire: bool = False,
) -> Result:
    """Run `simulate` where a loop is running, such as in a notebook; `progress` is called from another thread."""
    return await asyncio.to_thread(
        simulate, spec, out, trials, fast=fast, faults=faults, progress=progress, task=task, trace_wire=trace_wire
    )


def verify(folder: str | Path, *, key: str | Path | None = None) -> Verified:
    """Check whether the ledgers or skeletons of a folder or exported file are complete, unaltered and consistent.

    `key` is the file of the auditor's key, where skeletons are sealed to it.
    """
    from p2pdp.runs.audit import verify as judge

    return judge(folder, key)


def audit(
    folder: str | Path,
    colluders: Sequence[int] | None = None,
    delta: float | None = None,
    *,
    allow_missing: bool = False,
    key: str | Path | None = None,
) -> Audited:
    """Return how much every observer of a run could have learned, from skeletons alone. Nothing is written.

    `folder` is a run's folder or a file made by `export`.
    Raises `VerificationFailed` where ledgers are altered, missing or never closed; with `allow_missing`, where
    they are only missing or never closed, claims for observers whose rows are complete and refuses the others
    by name. `colluders` and `delta` are those of the spec where they are not given. `key` is the file of the auditor's
    key, where skeletons are sealed to it; without it they count as missing.
    """
    from p2pdp.runs.audit import audit as judge

    return judge(folder, colluders, delta, allow_missing=allow_missing, key=key)


async def audit_async(
    folder: str | Path,
    colluders: Sequence[int] | None = None,
    delta: float | None = None,
    *,
    allow_missing: bool = False,
    key: str | Path | None = None,
) -> Audited:
    """Run `audit` where a loop is already running, such as in a notebook."""
    return await asyncio.to_thread(audit, folder, colluders, delta, allow_missing=allow_missing, key=key)


def plan(spec: Spec | str | Path, target_epsilon: float | None = None, *, task: Objective | None = None) -> Plan:
    """Return what a run of this spec would cost, before anything starts: privacy, error, messages, time.

    Claims hold a priori, over all that chance decides. With `target_epsilon` the result has a `target`: the sigma (for
    randomized response the epsilon of one report) with which one other user learns no more than that at the spec's
    delta, and what local differential privacy would need. Raises `Refused` where no amount of noise is enough.
    """
    from p2pdp.runs.plan import plan_spec

    return plan_spec(_checked(spec, task), target_epsilon)


async def plan_async(
    spec: Spec | str | Path, target_epsilon: float | None = None, *, task: Objective | None = None
) -> Plan:
    """Run `plan` where a loop is already running, such as in a notebook."""
    return await asyncio.to_thread(plan, spec, target_epsilon, task=task)


def account(name: str, /, **inputs: float | str) -> Accounted:
    """Return the answer of one published theorem or accountant, such as `account("gaussian", mu=1, delta=1e-5)`.

    `p2pdp account --list` names them. Raises `UsageError` for inputs that it does not take, and `Refused` where an
    assumption of the theorem does not hold.
    """
    from p2pdp.runs.account import account as ask

    return ask(name, inputs)


def views(folder: str | Path) -> Iterator[dict[str, Any]]:
    """Yield every record of every view at hand, as `p2pdp views` prints them."""
    from p2pdp.runs.audit import views as lines

    return lines(folder)


def export(folder: str | Path, out: str | Path, *, key: str | Path | None = None) -> int:
    """Write spec, roster and skeletons to one file, enough for an audit and without values; return their number.

    `key` is the file of the auditor's key, where skeletons are sealed to it; in the file they are open.
    """
    from p2pdp.runs.audit import export as write

    return write(folder, out, key)


def attack(folder: str | Path, observer: int | str, target: int | None = None) -> Attacked:
    """Return what one user can read about others in its own view.ledger, or in network shuffling the "curator".

    Private ledgers are read afterwards, and only to say how far off the estimates are.
    """
    from p2pdp.runs.attack import attack as decode

    return decode(folder, observer, target)


def keygen(out: str | Path, *, auditor: bool = False) -> str:
    """Make an identity in a folder (identity.key 0600, identity.pub), and return the public key in hexadecimal.

    With `auditor` it is an auditor's key instead (auditor.key 0600, auditor.pub), for `[audit] key` of a spec.
    """
    from p2pdp.crypto.entropy import random_bytes
    from p2pdp.files.keys import write_auditor_key, write_identity

    write = write_auditor_key if auditor else write_identity
    return write(Path(out), random_bytes(32))
