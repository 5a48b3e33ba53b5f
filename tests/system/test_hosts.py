"""Runs across machines, which are network namespaces here: with packets lost, and with cables that break and heal."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from p2pdp.auditor.verify import COMPLETE, INCOMPLETE
from tests.support.forked import run as run_here
from tests.support.hosted import PORT, Command, Hosted, connections
from tests.support.launched import complete, sparse
from tests.support.netns import Network

NODES = 6
HOSTS = 4
UNDER_WAY = 50  # frames
AGAIN = 8  # after 10 ms, then always twice as long: five seconds


@pytest.fixture
def network(networks: type[Network]) -> Iterator[Network]:
    with networks(HOSTS) as network:
        yield network


def patient(text: str, patience_s: float = 30) -> str:
    """No run is audited but the one whose audit is looked at."""
    return text.replace("patience_s = 6", f"patience_s = {patience_s}\naudit = false")


def completed(run: Hosted, bootstrap: Command, nodes: list[Command]) -> None:
    """Everybody has the same result, and the ledgers tell of each contribution exactly once."""
    result = bootstrap.result()
    assert (result["nodes"], result["missing"]) == (NODES, [])
    for user, node in enumerate(nodes):
        mine = node.result()
        same = ("run_id", "protocol", "nodes", "estimate", "standard_error")
        assert [mine[name] for name in same] == [result[name] for name in same]
        assert (mine["user"], mine["excluded"]) == (user, False)
    assert run.judge().verification.verified == COMPLETE


def test_a_run_across_machines_is_audited_from_the_skeletons_that_were_handed_in(
    tmp_path: Path, network: Network
) -> None:
    run = Hosted(tmp_path, network, sparse(NODES, 300), NODES)
    bootstrap = run.ready_for_nodes()
    nodes = run.all_nodes()
    completed(run, bootstrap, nodes)
    audited = run_here("audit", str(run.folder), "--json")
    assert (audited.returncode, audited.stderr) == (0, "")
    assert json.loads(audited.stdout)["verified"] == COMPLETE
    whole = run_here("audit", str(tmp_path / "whole"), "--json")
    assert json.loads(whole.stdout) == json.loads(audited.stdout), "ledgers tell no more than skeletons"
    assert "protocol walk.sum" in nodes[0].said, "a node shows what it is to take part in"


def test_packets_get_lost_and_the_run_completes(tmp_path: Path, network: Network) -> None:
    """One of ten from host to host from the first packet on, and of every five once connections are made.

    Not so many from the start: TCP waits for seconds where the first packets of a connection are lost.
    """
    network.lose(0.05)
    run = Hosted(tmp_path, network, patient(complete(NODES, 100)), NODES)
    bootstrap = run.ready_for_nodes()
    nodes = run.all_nodes()
    run.wait_for_progress(6000)
    network.lose(0.1)
    completed(run, bootstrap, nodes)


def cut_in_the_middle(run: Hosted, user: int) -> tuple[Command, list[Command]]:
    bootstrap = run.ready_for_nodes()
    nodes = run.all_nodes({0: [UNDER_WAY]})
    run.stands(0)
    run.network.cut(run.host_of(user))
    os.kill(nodes[0].process.pid, signal.SIGCONT)
    return bootstrap, nodes


@pytest.mark.parametrize("given_up", [False, True], ids=["the same connections go on", "new ones are made"])
def test_a_cable_breaks_for_seconds_and_heals(tmp_path: Path, network: Network, *, given_up: bool) -> None:
    run = Hosted(tmp_path, network, patient(complete(NODES, 1000)), NODES)
    bootstrap, nodes = cut_in_the_middle(run, 2)
    host = run.host_of(2)
    stuck = set(connections(host))

    def is_given_up() -> bool:
        return not connections(host).keys() >= stuck

    def in_vain() -> bool:
        return is_given_up() or max(connections(host).values(), default=0) >= AGAIN

    run.wait_for(is_given_up if given_up else in_vain, "seconds of sending in vain")
    assert bootstrap.running
    network.heal(host)
    completed(run, bootstrap, nodes)


def test_who_is_cut_off_for_too_long_is_out_and_learns_it_when_the_cable_heals(
    tmp_path: Path, network: Network
) -> None:
    run = Hosted(tmp_path, network, patient(complete(NODES - 1, 1000), 3), NODES - 1)
    gone = 2
    assert run.together(gone) == [gone]
    bootstrap, nodes = cut_in_the_middle(run, gone)
    bootstrap.hear(f"user {gone} is excluded")
    network.heal(run.host_of(gone))
    result = bootstrap.result()
    assert result["missing"] == [gone]
    for user, node in enumerate(nodes):
        mine = node.result()
        assert mine["excluded"] == (user == gone)
        assert mine["estimate"] == (None if user == gone else result["estimate"])
    assert "bootstrap excluded this node" in nodes[gone].said
    assert run.judge().verification.verified == INCOMPLETE


def test_nodes_may_come_before_bootstrap_and_say_whom_they_wait_for(tmp_path: Path, network: Network) -> None:
    run = Hosted(tmp_path, network, patient(complete(NODES, 200)), NODES)
    run.ready_for_nodes().interrupt()  # the tokens are made and handed out
    nodes = [run.node(user) for user in range(NODES - 1)]
    for node in nodes:
        node.hear(f"waiting for bootstrap at {network.hosts[0].address}:{PORT}")
    bootstrap = run.bootstrap()
    bootstrap.hear(f"{NODES - 1} of {NODES} nodes have enrolled")
    nodes[0].hear(f"{NODES - 1} of {NODES}")
    nodes.append(run.node(NODES - 1))
    completed(run, bootstrap, nodes)
