"""The common part of all benchmarks: the spec they run, checks of options, and a local run in a temporary folder."""

from __future__ import annotations

import json
import re
import resource
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from p2pdp.cluster.folder import RunFolder
from p2pdp.cluster.jobs import Job, job_of
from p2pdp.cluster.layout import ONE_EACH, Packing
from p2pdp.core.errors import NotReady, UsageError
from p2pdp.transports.registry import names, transport_kind

PROCESSES: Final = Path("/proc")
_PRIVATE: Final = re.compile(r"^Private_(?:Clean|Dirty): +(\d+) kB$", re.MULTILINE)


def spec_text(template: str, **sections: dict[str, Any]) -> str:
    """Return the spec `template` of this folder, with the keys of `sections` set."""
    document = tomllib.loads((Path(__file__).parent / f"{template}.toml").read_text("utf-8"))
    for name, keys in sections.items():
        document[name] = document.get(name, {}) | keys
    return "".join(_section(name, keys) for name, keys in document.items())


def _section(name: str, keys: dict[str, Any]) -> str:
    return "\n".join([f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items()), ""])


def require(condition: object, option: str, rule: str) -> None:
    """Refuse an option of the command line; `option` is shown with its value."""
    if not condition:
        raise UsageError(f"{option}: must be {rule}")


def require_one_of(option: str, value: str, choices: tuple[str, ...]) -> None:
    require(value in choices, f"{option} {value}", f"one of {', '.join(choices)}")


def require_transport(name: str) -> None:
    """Refuse a transport that keeps all users in one process: rates of processes are measured."""
    require_one_of("--transport", name, tuple(one for one in names() if not transport_kind(one).in_one_process))


def require_degree(nodes: int, degree: int, degree_min: int) -> None:
    fits = degree_min <= degree < nodes and nodes * degree % 2 == 0
    require(fits, f"--degree {degree}", f"at least {degree_min} and below --nodes, and their product even")


@contextmanager
def local_run(text: str, packing: Packing = ONE_EACH) -> Iterator[tuple[RunFolder, Job]]:
    """Prepare a local run in a temporary folder, and remove the folder at the end."""
    with TemporaryDirectory(prefix="p2pdp-bench-") as name:
        folder = RunFolder.make(Path(name) / "run", text, packing)
        job = job_of(folder)
        job.plan(job.slots, job.stated)
        if not packing.spawn:
            job.warm_up()
        yield folder, job


def cpu_s() -> float:
    """Return the processor time of this process and of all children that have ended."""
    usage = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(used.ru_utime + used.ru_stime for used in usage)


def counts_private_memory() -> bool:
    return (PROCESSES / "self" / "smaps_rollup").is_file()


def private_mib(process: int | str = "self") -> float:
    """Return the memory that `process` shares with no other (USS), in MiB."""
    try:
        text = (PROCESSES / str(process) / "smaps_rollup").read_text()
    except OSError as error:
        raise NotReady(f"the memory of process {process} cannot be read: {error.strerror}") from None
    return sum(int(kibibytes) for kibibytes in _PRIVATE.findall(text)) / 1024
