"""Metrics in the text format of Prometheus: counts and durations of a life cycle, and nothing for each message.

How many messages a node had, or when, would be a part of the token's route: there is no such counter. What participants
may read leaves out durations, faults and memory as well, since these depend on it (`report/participants.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from p2pdp.web.status import Status

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPED: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def metrics_text(status: Status, version: str, now_s: float, resident_bytes: int | None, *, full: bool) -> str:
    """`full` adds durations, faults and memory, which follow how much was received: they are for the auditor only."""
    lines = [*_lines(status, version, now_s)]
    if full:
        lines += _full_lines(status, now_s, resident_bytes)
    return "".join(f"{line}\n" for line in lines)


def _lines(status: Status, version: str, now_s: float) -> Iterator[str]:
    who = {"version": version, "role": status.role, "protocol": status.protocol or "", "run_id": status.run_id or ""}
    yield from _gauge("p2pdp_info", "What this process is.", {_labels(who): 1})
    states = {_labels({"state": state}): int(state == status.state) for state in status.states}
    yield from _gauge("p2pdp_state", "1 for the state that the run is in.", states)
    yield from _gauge("p2pdp_uptime_seconds", "Time since this process began.", {"": max(0.0, now_s - status.began_s)})
    if status.role == "bootstrap":
        yield from _gauge("p2pdp_resumed", "1 if this process went on with a run begun before.", {"": status.resumed})
        yield from _gauge("p2pdp_nodes_expected", "Nodes that may take part.", {"": status.nodes or 0})
        yield from _gauge("p2pdp_nodes_enrolled", "Nodes that have enrolled.", {"": status.enrolled})
        yield from _gauge("p2pdp_nodes_in_roster", "Nodes in the roster, 0 before there is one.", {"": status.n or 0})
        yield from _gauge("p2pdp_nodes_ready", "Nodes that said that they are ready.", {"": status.ready})
        yield from _gauge("p2pdp_nodes_excluded", "Nodes that were put out.", {"": len(status.excluded)})
    yield from _gauge("process_start_time_seconds", "When this process began, since 1970.", {"": status.began_s})


def _full_lines(status: Status, now_s: float, resident_bytes: int | None) -> Iterator[str]:
    seconds = {_labels({"state": state}): value for state, value in status.seconds_in(now_s).items()}
    yield from _gauge("p2pdp_state_seconds", "Time in each state, in this process.", seconds)
    faults = {_labels({"kind": kind}): count for kind, count in sorted(status.faults.items())}
    yield from _family("p2pdp_faults_total", "counter", "Faults recorded here, by kind.", faults)
    if resident_bytes is not None:
        yield from _gauge("process_resident_memory_bytes", "Resident memory of this process.", {"": resident_bytes})


def _gauge(name: str, text: str, values: Mapping[str, float]) -> Iterator[str]:
    return _family(name, "gauge", text, values)


def _family(name: str, kind: str, text: str, values: Mapping[str, float]) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for labels, value in values.items():
        yield f"{name}{labels} {float(value):.17g}"


def _labels(named: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{value.translate(_ESCAPED)}"' for name, value in named.items()) + "}"
