"""The interface for users: typed functions behind the commands of the same names.

Objects have fields named as in the JSON documents that the commands print. Wherever a spec is asked for, it may be a
`Spec`, the path of a file, or a mapping that reads like one; however it comes, it passes the checks of a file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import Spec

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from p2pdp.report.result import Result
    from p2pdp.runs.account import Accounted
    from p2pdp.runs.attack import Attacked
    from p2pdp.runs.audit import Audited, Verified
    from p2pdp.runs.plan import Plan
    from p2pdp.runs.sweep import Sweep
    from p2pdp.sim.faults import Faults
    from p2pdp.tasks.objectives import Objective

Source = Spec | Mapping[str, Any] | str | Path
Progress = Callable[[int, int], None]
OnEvent = Callable[[dict[str, Any]], None]
_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")


def load_spec(path: str | Path, overrides: Sequence[str] = ()) -> Spec:
    """Return the spec in a TOML file, checked; `overrides` are `section.key=value` texts."""
    from p2pdp.files.spec import load_spec as load

    return load(path, overrides)


def spec(source: Source | None = None, /, **changes: Any) -> Spec:
    """Return a checked spec, made from its sections or from another one with changes.

    `source` is a mapping that reads like a spec file, a spec, or the path of a file; each change is a section or a key:

    >>> import p2pdp
    >>> first = p2pdp.spec(
    ...     run={"protocol": "gossip.average", "nodes": 8},
    ...     graph={"kind": "hypercube"},
    ...     gossip={"rounds": 10},
    ...     noise={"mechanism": "gaussian", "sigma": 2.0},
    ...     data={"kind": "uniform", "clip": [0, 1]},
    ... )
    >>> p2pdp.spec(first, noise={"sigma": 3.0}).noise.sigma
    3.0
    >>> p2pdp.spec(first, **{"noise.sigma": None, "noise.epsilon": 1.0, "noise.delta": 1e-6})
    Spec(gossip.average, nodes=8, graph=hypercube, data=uniform, task=mean, noise=gaussian)
    >>> p2pdp.spec(first, noise={"sigm": 1.0})
    Traceback (most recent call last):
    p2pdp.core.errors.UsageError: [noise] sigm: unknown key; did you mean "sigma"?

    None takes a key out. `p2pdp guide spec` lists all keys. A spec that could not be run is refused, with the texts
    that a file would get. Relative paths are relative to the file, or else to the current folder.
    """
    from p2pdp.files.making import make_spec

    return make_spec({} if source is None else source, changes)


def _checked(source: Source, task: Objective | None, data: Any = None, graph: Any = None, public: Any = None) -> Spec:
    """Return the spec, checked as that of a file is, with what was given in place of its own."""
    from p2pdp.files.making import make_spec
    from p2pdp.runs.prepared import with_task

    return with_task(make_spec(source, None, data, graph, public), task)


def simulate(
    spec: Source,
    out: str | Path | None = None,
    trials: int | None = None,
    *,
    fast: bool = False,
    faults: Faults | None = None,
    progress: Progress | None = None,
    task: Objective | None = None,
    data: Any = None,
    graph: Any = None,
    public: Any = None,
    trace_wire: bool = False,
    workers: int | None = None,
    audit: bool = True,
) -> Result:
    """Run a spec in the simulated world.

    `out` is the folder to be filled; without one nothing is written and nothing audited, nor is it without `audit`.
    Trial i runs on seed + i, synthetic data and random graphs included, and trial 0 leaves the ledgers. `progress` is
    told hops done and hops in all (with `fast`: trials). A spec without a seed runs on seed 0. Noise and routing come
    from the seed too, so all claims about a simulated run are hypothetical.

    With `fast` results are sampled from their exact distribution, which takes milliseconds a trial: there are no
    ledgers and so no audit and no baselines. `messages` counts the same as in a full run; `bytes` and `seconds` are 0,
    because no frame is made and no clock runs.

    `task` is an objective of your own (`p2pdp.Objective`), which takes the place of the spec's `[task] kind`; `data`
    and `graph` take the place of `[data] kind` and `[graph] kind`, as in `run`, and `public`, a table with the same
    columns, that of `[data] public`: models are scored on it. With `trace_wire` each peer's folder has a `wire.jsonl`:
    what each frame said that it received, without values. Trials run in so many processes as `workers` says: by default
    one a core, or one where the caller has threads.
    """
    from p2pdp.runs.simulate import simulate_spec

    given: Any = {"fast": fast, "faults": faults, "progress": progress, "trace_wire": trace_wire, "workers": workers}
    return simulate_spec(_checked(spec, task, data, graph, public), _place(out), trials, audit=audit, **given)


def run(
    spec: Source,
    out: str | Path | None = None,
    *,
    nodes_per_process: int = 1,
    spawn: bool = False,
    on_event: OnEvent | None = None,
    task: Objective | None = None,
    data: Any = None,
    graph: Any = None,
    public: Any = None,
    trace_wire: bool = False,
) -> Result:
    """Run a spec on this machine, one operating-system process a user, and audits it.

    For more users than one machine has room for processes, `nodes_per_process` of them share one. With `spawn`
    each process is a fresh interpreter, instead of one forked from this, with which it would share memory.

    Noise and routing come from the operating system. `out` is the folder to be filled, by default
    ./p2pdp-RUN_ID. `on_event` is told of the run's life cycle: `{"event": "roster", …}`, never of messages.
    An interrupted run leaves a folder that `resume` continues.

    `task` is an objective of your own (`p2pdp.Objective`), which takes the place of the spec's `[task] kind`. Processes
    get it by being forked, so it goes neither with `spawn` nor to other machines, and `resume` needs it again. The same
    holds for `data`: an array or DataFrame that is split among users, or a list or dict with one for each. They take
    the place of `[data] kind`, and count as real data: such a run has no seed. `graph` is a networkx graph or an
    adjacency matrix in place of `[graph] kind`; its edges are kept in the folder. `public` is a table of public rows
    on which models are scored, in place of `[data] public`. Call it from the main thread only.
    With `trace_wire` each peer's folder has a `wire.jsonl`: what each frame said that it received, without values.
    """
    from p2pdp.cluster.layout import Packing
    from p2pdp.runs.live import run_spec

    _refuse_threads("run")
    packing = Packing(nodes_per_process, spawn, trace_wire)
    loaded = _checked(spec, task, data, graph, public)
    return run_spec(loaded, _place(out), on_event or _ignore, packing)


def resume(
    folder: str | Path,
    *,
    nodes_per_process: int | None = None,
    spawn: bool | None = None,
    on_event: OnEvent | None = None,
    task: Objective | None = None,
    data: Any = None,
) -> Result:
    """Continue an interrupted run; of a finished one return the result again.

    Uses the process layout of the original run unless overridden. What came from Python is needed again: `task` and
    `data` are in no file. Edges that were given as `graph` are in the folder.
    """
    from p2pdp.runs.live import resume as go_on

    _refuse_threads("resume")
    return go_on(Path(folder), on_event or _ignore, nodes_per_process, spawn=spawn, task=task, data=data)


async def run_async(
    spec: Source,
    out: str | Path | None = None,
    *,
    nodes_per_process: int = 1,
    spawn: bool = False,
    on_event: OnEvent | None = None,
    data: Any = None,
    graph: Any = None,
    trace_wire: bool = False,
) -> Result:
    """Run `run` where a loop is running, from a clean process of its own: a process with threads is not safe to fork.

    Cancelling it interrupts the run, which `resume` continues. An objective of your own cannot reach that process.
    """
    from p2pdp.cluster.apart import ask
    from p2pdp.cluster.layout import Packing
    from p2pdp.runs import apart

    loaded = _checked(spec, None, data, graph)
    packing = Packing(nodes_per_process, spawn, trace_wire)
    order = apart.run_order(loaded, _place(out), packing)
    return apart.result_in(await ask(apart.MODULE, order, on_event or _ignore))


async def resume_async(
    folder: str | Path,
    *,
    nodes_per_process: int | None = None,
    spawn: bool | None = None,
    on_event: OnEvent | None = None,
    data: Any = None,
) -> Result:
    """Run `resume` where a loop is running, from a clean process of its own as `run_async` does."""
    from p2pdp.cluster.apart import ask
    from p2pdp.runs import apart

    order = apart.resume_order(Path(folder), nodes_per_process, spawn=spawn, data=data)
    return apart.result_in(await ask(apart.MODULE, order, on_event or _ignore))


def _refuse_threads(name: str) -> None:
    if current_thread() is not main_thread():
        raise UsageError(f"{name}: only the main thread can fork and take signals; await p2pdp.{name}_async instead")


def _place(out: str | Path | None) -> Path | None:
    if not isinstance(out, str | Path | None):
        raise UsageError(f"out: must be a path, not of type {type(out).__name__}")
    return None if out is None else Path(out)


def _ignore(_event: dict[str, Any]) -> None:
    pass


def verify(folder: str | Path, *, key: str | Path | None = None, bootstrap: str | Path | None = None) -> Verified:
    """Check whether the ledgers or skeletons of a folder or exported file are complete, unaltered and consistent.

    `key` is the file of the auditor's key, where skeletons are sealed to it. `bootstrap` is the public key of the
    bootstrap whose run it must be, in hexadecimal or in a file; without it the key in the folder is believed, or in a
    node's folder the one that the node enrolled with. `not_checked` of the answer says what nothing at hand can tell.
    """
    from p2pdp.runs.audit import verify as judge

    return judge(folder, key, bootstrap)


def audit(
    folder: str | Path,
    colluders: Sequence[int] | None = None,
    delta: float | None = None,
    *,
    allow_missing: bool = False,
    key: str | Path | None = None,
    progress: Progress | None = None,
    bootstrap: str | Path | None = None,
    workers: int | None = None,
    pairs: bool = False,
) -> Audited:
    """Return how much every observer of a run could have learned, from skeletons alone. Nothing is written.

    `folder` is a run's folder or a file made by `export`. Raises `VerificationFailed` where ledgers are altered,
    missing or never closed; with `allow_missing`, where they are only missing or never closed, claims for observers
    whose rows are complete and refuses others by name. `colluders` and `delta` are the spec's where not given. `key`
    is the file of the auditor's key, where skeletons are sealed to it; without it they count as missing. `progress` is
    told how many users were looked at, of how many; each step begins anew. `bootstrap` is as in `verify`. Long work is
    shared by at most `workers` processes, which changes no bit of the answer: by default one a core, or one where the
    caller has threads. With `pairs` all pairs are held, else above some thousands of users `totals` only.
    """
    from p2pdp.runs.audit import audit as judge

    given: Any = {"allow_missing": allow_missing, "key": key, "progress": progress, "workers": workers, "pairs": pairs}
    return judge(folder, colluders, delta, bootstrap=bootstrap, **given)


def plan(
    spec: Source,
    target_epsilon: float | None = None,
    *,
    task: Objective | None = None,
    data: Any = None,
    graph: Any = None,
) -> Plan:
    """Return what a run of this spec would cost, before anything starts: privacy, error, messages, time.

    Claims hold a priori, over all that chance decides. With `target_epsilon` the result has a `target`: the sigma (for
    randomized response the epsilon of one report) with which one other user learns no more than that at the spec's
    delta, and what local differential privacy would need. Raises `Refused` where no amount of noise is enough.
    """
    from p2pdp.runs.plan import plan_spec

    return plan_spec(_checked(spec, task, data, graph), target_epsilon)


def sweep(
    description: str | Path | Mapping[str, Any],
    *,
    out: str | Path | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Run a spec over a grid of settings and seeds, and return a row for each run.

    `description` is a TOML file (`p2pdp guide sweep`) or a mapping like it, whose `base` may also be a spec. In the
    folder `out` rows are kept as they come, and the same call continues there; without one nothing is written.
    `executor` takes the place of the described one: any of `concurrent.futures`, which is not shut down. A run that
    fails is a row with its error. `progress` is told rows done and rows in all.
    """
    from p2pdp.runs.sweep import sweep_runs

    return sweep_runs(description, _place(out), executor, progress)


def load_state_dict(folder: str | Path, module: Any, *, user: int | None = None) -> Any:
    """Load the model that a run learned into a torch module like the one it was made of, and return that module.

    `folder` is a run's folder. `user` says whose model it is to be, where gossip left one with each user.
    """
    from p2pdp.files.models import load_state_dict as load

    return load(folder, module, user)


def account(name: str, /, **inputs: float | str) -> Accounted:
    """Return the answer of one published theorem or accountant.

    >>> import p2pdp
    >>> p2pdp.account("gaussian", mu=1, delta=1e-5)
    Accounted(gaussian, mu=1, delta=1e-5: epsilon 4.377, mu 1)

    `p2pdp account --list` names them. Raises `UsageError` for inputs that it does not take, and `Refused` where an
    assumption of the theorem does not hold.
    """
    from p2pdp.runs.account import account as ask

    return ask(name, inputs)


def views(folder: str | Path, *, unverified: bool = False) -> Iterator[dict[str, Any]]:
    """Yield every record of every view at hand, as `p2pdp views` prints them.

    Raises `VerificationFailed` where ledgers are not in order; with `unverified` they are shown all the same.
    """
    from p2pdp.runs.audit import views as lines

    return lines(folder, unverified=unverified)


def export(folder: str | Path, out: str | Path, *, key: str | Path | None = None, unverified: bool = False) -> int:
    """Write spec, roster and skeletons to one file, enough for an audit and without values; return their number.

    `key` is the file of the auditor's key, where skeletons are sealed to it; in the file they are open. Raises
    `VerificationFailed` where ledgers are not in order; with `unverified` they are written all the same.
    """
    from p2pdp.runs.audit import export as write

    return write(folder, out, key, unverified=unverified)


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


def _in_a_thread(work: Callable[_Arguments, _Answer]) -> Callable[_Arguments, Coroutine[Any, Any, _Answer]]:
    """Return the form of a function for where a loop is running: it works in a thread, and calls back from there."""

    @wraps(work)
    async def awaited(*arguments: _Arguments.args, **options: _Arguments.kwargs) -> _Answer:
        return await asyncio.to_thread(work, *arguments, **options)

    awaited.__name__ = awaited.__qualname__ = f"{work.__name__}_async"
    awaited.__doc__ = f"Run `{work.__name__}` in a thread, where a loop is running; callbacks come from that thread."
    return awaited


simulate_async = _in_a_thread(simulate)
plan_async = _in_a_thread(plan)
sweep_async = _in_a_thread(sweep)
audit_async = _in_a_thread(audit)
verify_async = _in_a_thread(verify)
attack_async = _in_a_thread(attack)
export_async = _in_a_thread(export)
