"""`p2pdp bench NAME`: what this machine reaches. A benchmark is a command below, with options of its own."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from p2pdp.cli.options import AsJson, print_columns, print_document

Transport = Annotated[str, typer.Option(help="As in [run] transport; a broker is started where one is needed.")]

app = typer.Typer(rich_markup_mode=None, help="Measures this machine.")


@app.command()
def start(
    nodes: Annotated[int, typer.Option(help="Number of users.")] = 200,
    nodes_per_process: Annotated[int, typer.Option(help="Users per process.")] = 1,
    spawn: Annotated[bool, typer.Option("--spawn", help="Fresh interpreters instead of forks.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measures the time until all users are enrolled, and the memory of each."""
    from p2pdp.bench.start import bench_start

    _show(bench_start(nodes, nodes_per_process, spawn=spawn, whole_process=True), as_json=as_json)


@app.command()
def hops(
    nodes: Annotated[int, typer.Option(help="Number of users, one process each.")] = 50,
    hops: Annotated[int, typer.Option(help="Hops of all tokens in one measurement.")] = 50_000,
    tokens: Annotated[int, typer.Option(help="Number of tokens at a time.")] = 1,
    pairs: Annotated[int, typer.Option(help="Measurements of each kind; real hops and bare ones take turns.")] = 5,
    graph: Annotated[str, typer.Option(help="complete or regular.")] = "complete",
    degree: Annotated[int, typer.Option(help="Degree of a regular graph.")] = 20,
    transport: Transport = "tcp",
    as_json: AsJson = False,
) -> None:
    """Measures hops a second, beside those of a bare encrypted token.

    Noise is laid in before each stretch, as nodes on machines of their own do; names with "with_draws" count it in.
    """
    from p2pdp.bench.hops import bench_hops

    _show(bench_hops(nodes, hops, tokens, pairs, graph, degree, transport), as_json=as_json)


Pairs = Annotated[int, typer.Option(help="Measurements of each kind; real rounds and bare ones take turns.")]


@app.command()
def gossip(
    nodes: Annotated[int, typer.Option(help="Number of users, one process each.")] = 16,
    degree: Annotated[int, typer.Option(help="Neighbours of each user.")] = 4,
    rounds: Annotated[int, typer.Option(help="Number of rounds.")] = 2000,
    pairs: Pairs = 3,
    transport: Transport = "tcp",
    as_json: AsJson = False,
) -> None:
    """Measures rounds of gossip a second, with encryption and ledgers, beside rounds of bare encrypted exchanges."""
    from p2pdp.bench.gossip import bench_gossip

    _show(bench_gossip(nodes, degree, rounds, pairs, transport), as_json=as_json)


@app.command()
def vectors(
    nodes: Annotated[int, typer.Option(help="Number of users, one process each.")] = 16,
    degree: Annotated[int, typer.Option(help="Neighbours of each user.")] = 4,
    numbers: Annotated[int, typer.Option(help="Numbers of each user's vector.")] = 10_000,
    rounds: Annotated[int, typer.Option(help="Number of rounds.")] = 30,
    pairs: Pairs = 3,
    transport: Transport = "tcp",
    as_json: AsJson = False,
) -> None:
    """Measures the same for vectors of many numbers."""
    from p2pdp.bench.gossip import bench_vectors

    _show(bench_vectors(nodes, degree, numbers, rounds, pairs, transport), as_json=as_json)


@app.command()
def audit(
    nodes: Annotated[int, typer.Option(help="Number of users.")] = 256,
    rounds: Annotated[int, typer.Option(help="Rounds of gossip in the run.")] = 16,
    graph: Annotated[str, typer.Option(help="hypercube, ring, complete or erdos_renyi.")] = "hypercube",
    as_json: AsJson = False,
) -> None:
    """Measures time and memory of the exact leaks of all pairs."""
    from p2pdp.bench.audit import bench_audit

    _show(bench_audit(nodes, rounds, graph), as_json=as_json)


@app.command()
def noise(
    mechanism: Annotated[
        str, typer.Option(help="gaussian, laplace, randomized_response or uniform_bits.")
    ] = "gaussian",
    numbers: Annotated[int, typer.Option(help="Numbers in a batch.")] = 10_000,
    as_json: AsJson = False,
) -> None:
    """Measures the time that a number of exact noise takes."""
    from p2pdp.bench.noise import bench_noise

    _show(bench_noise(mechanism, numbers), as_json=as_json)


def _show(measured: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_document(measured)
        return
    shown = {name: value for name, value in measured.items() if not isinstance(value, list)}
    print_columns(
        (name.replace("_", " "), f"{value:.4g}" if isinstance(value, float) else str(value))
        for name, value in shown.items()
    )
