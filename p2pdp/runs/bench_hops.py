"""`bench hops`: how many hops a second, beside the rate of the bare boxed hop in the same processes.

A pair is one stretch of each kind over all hops. Rates wander with the machine, so what counts is the median of
the pairs' ratios; links are dialled and warmed up before, and what dialling takes is reported apart.
"""

from __future__ import annotations

from statistics import mean, median
from typing import Any, Final

from p2pdp.cluster.bench_hops import measure_hops
from p2pdp.core.errors import UsageError
from p2pdp.files.data import load_data
from p2pdp.files.spec import parse_spec
from p2pdp.mechanisms.sampler import warm
from p2pdp.protocols.run_plan import plan_run

GRAPHS: Final = ("complete", "regular")
TRANSPORTS: Final = ("tcp", "mqtt")
_SPEC: Final = """
[run]
protocol = "walk.sum"
nodes = {nodes}
seed = 1
transport = "{transport}"
[graph]
kind = "{graph}"
{degree}
[walk]
order = "random"
hops = {hops}
tokens = {tokens}
[noise]
mechanism = "gaussian"
sigma = 1.0
[data]
kind = "uniform"
clip = [0.0, 1.0]
"""


def bench_hops(
    nodes: int = 50,
    hops: int = 50_000,
    tokens: int = 1,
    pairs: int = 5,
    graph: str = "complete",
    degree: int = 20,
    transport: str = "tcp",
) -> dict[str, Any]:
    """`hops` are those of one stretch, of all its tokens together. Over mqtt there is a broker for the time of it."""
    if min(nodes - 1, hops, tokens, pairs) < 1:
        raise UsageError("--nodes must be at least 2, and --hops, --tokens and --pairs at least 1")
    if hops < tokens:
        raise UsageError(f"--hops {hops}: each of {tokens} tokens makes at least one")
    if graph not in GRAPHS:
        raise UsageError(f"--graph {graph}: must be {' or '.join(GRAPHS)}")
    if graph == "regular" and not (0 < degree < nodes and nodes * degree % 2 == 0):
        raise UsageError(f"--degree {degree}: must be below --nodes, and their product even")
    if transport not in TRANSPORTS:
        raise UsageError(f"--transport {transport}: must be {' or '.join(TRANSPORTS)}")
    each = hops // tokens
    degrees = f"degree = {degree}" if graph == "regular" else ""
    # A walk of one token alone begins where it is told, and of several at a neighbour: always as with several.
    items = max(2, tokens * (pairs + 1))
    sizes = {"nodes": nodes, "hops": each, "tokens": items}
    spec = parse_spec(_SPEC.format(graph=graph, degree=degrees, transport=transport, **sizes), None)
    run = plan_run(spec, nodes, 1)
    assert run.graph is not None
    for mechanism in run.plan.mechanisms:
        warm(mechanism)
    measured = measure_hops(run, load_data(spec, nodes).user, tokens=tokens, hops=each, pairs=pairs)
    links = sum(map(len, run.graph.neighbours)) // 2
    about = {"transport": transport, "nodes": nodes, "graph": graph, "degree": 2 * links / nodes, "tokens": tokens}
    return (
        about
        | {"hops": each * tokens}
        | _rates(measured, each * tokens)
        | _dials(measured, links)
        | _growth(measured["growth"])
    )


def _rates(measured: dict[str, Any], hops: int) -> dict[str, Any]:
    """Medians over all pairs, and the pairs; the first of each kind was for warming up.

    Before each stretch users lay in noise, as nodes on machines of their own do while it is quiet. The names with
    `_with_draws` are what is left where they do not, as in a local run: one draw a hop is added, at what those that
    were laid in took all users together.
    """
    rests = [rest for rest in measured["rest"] if rest["draws"]]
    draws = max(1, sum(rest["draws"] for rest in rests))
    draw_s, draw_cpu_s = (sum(rest[name] for rest in rests) / draws for name in ("seconds", "cpu_s"))
    pairs = [
        {
            "hops_per_second": hops / real["seconds"],
            "bare_hops_per_second": hops / bare["seconds"],
            "ratio": bare["seconds"] / real["seconds"],
            "hops_per_second_with_draws": hops / (real["seconds"] + hops * draw_s),
            "ratio_with_draws": bare["seconds"] / (real["seconds"] + hops * draw_s),
            "cpu_us_per_hop": 1e6 * real["cpu_s"] / hops,
            "bare_cpu_us_per_hop": 1e6 * bare["cpu_s"] / hops,
        }
        for real, bare in zip(measured["real"][1:], measured["bare"][1:], strict=True)
    ]
    medians = {name: median(pair[name] for pair in pairs) for name in pairs[0]}
    return medians | {"cpu_us_per_draw": 1e6 * draw_cpu_s, "pairs": pairs}


def _dials(measured: dict[str, Any], links: int) -> dict[str, Any]:
    """A dial is a connection, two key agreements, and both ends' comparison of numbers."""
    seconds = measured["dial_s"]
    return {"dials": links, "dial_seconds": seconds, "dial_ms": 1e3 * seconds / links}


def _growth(users: list[dict[str, Any]]) -> dict[str, Any]:
    """What a node needs, on average: its ledgers grow with its visits, its memory with its degree."""
    private_mib = [user["private_mib"] for user in users]
    return {
        "ledger_bytes_per_node": mean(user["ledger_bytes"] for user in users),
        "private_mib_per_node": None if None in private_mib else mean(private_mib),
    }
