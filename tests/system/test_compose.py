"""Containers as `docker compose` starts them: a whole run, who can read what, and containers that fail."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from p2pdp.auditor.verify import COMPLETE
from p2pdp.crypto.tokens import JoinToken
from p2pdp.files.keys import write_identity
from p2pdp.runs.audit import verify
from tests.support.engine import BASE, IMAGE, MQTT, NODE, TCP, Container, Project, docker, ended, engine
from tests.support.launched import GUARD_S, complete, wait_for
from tests.support.pairwise_world import pairwise
from tests.support.sources import TOP

pytestmark = [pytest.mark.docker, pytest.mark.slow]

TOKEN = "run/tokens/0000.token"
NODES = 5
IMAGE_BYTES_MAX = 272_000_000  # beyond the base
SECRETS = re.compile(r"p2pdp1:|PRIVATE KEY|\b[0-9a-f]{64}\b")

EVERY_COMMAND = """
import typer.main
from p2pdp.cli.main import app, main
def asked(command, *path):
    assert main([*path, "--help"]) == 0, path
    for name, one in getattr(command, "commands", {}).items():
        asked(one, *path, name)
asked(typer.main.get_command(app))
for name in "complete_sum", "gossip_sgd", "shuffle_single", "walk_sgd":
    spec = f"/samples/{name}.toml"
    for line in f"plan {spec}", f"simulate {spec} --out {name}", f"verify {name}", f"audit {name}":
        assert main(line.split()) == 0, line
for line in (
    "attack complete_sum --observer 3", "views complete_sum", "export complete_sum --out skeletons", "audit skeletons",
    "account gaussian mu=1 delta=1e-5", "keygen --out identity", "keygen --tls --out tls", "demo --out demo",
):
    assert main(line.split()) == 0, line
assert main("reproduce 003-table1 --quick".split()) == 6
"""


def patient(hops: int) -> str:
    return complete(NODES, hops).replace("patience_s = 6", "patience_s = 120").replace("seed = 1\n", "")


def hardened(facts: Any) -> list[bool]:
    host = facts["HostConfig"]
    return [
        facts["Config"]["User"] not in ("", "0", "root"),
        host["ReadonlyRootfs"],
        host["CapDrop"] == ["ALL"],
        not host["CapAdd"],
        not host["Privileged"],
        any(option.startswith("no-new-privileges") for option in host["SecurityOpt"]),
        host["PidsLimit"] > 0,
        host["Memory"] > 0,
        host["RestartPolicy"]["Name"] == "on-failure",
        host["LogConfig"]["Config"].get("max-size") is not None,
        not any("docker.sock" in mount["Source"] for mount in facts["Mounts"]),
    ]


def owner_only(nodes: list[Container]) -> None:
    """Whatever one may read, even as root, of all markers it finds its own only."""
    for number, node in enumerate(nodes):
        (node.data / f"own.marker{number}").touch()
    for number, node in enumerate(nodes):
        find = ["--entrypoint", "find", IMAGE, "/", "-path", "/proc", "-prune", "-o", "-name", "own.marker*", "-print"]
        found = docker("run", "--rm", "--user", "0", "--volumes-from", node.name, *find)
        assert found == f"/data/own.marker{number}"


def test_a_scaled_run_is_audited_and_its_report_is_on_a_port(tmp_path: Path) -> None:
    with Project(tmp_path, MQTT) as project:
        project.up("--scale", f"node={NODES}")
        result = project.result()
        nodes, bootstrap = project.nodes(NODES), project.container("bootstrap")
        assert (result["nodes"], result["missing"], result["protocol"]) == (NODES, [], "walk.sum")
        assert ended(nodes) == [0] * NODES
        assert all(f"estimate {result['estimate']:.4g}"[:12] in node.said for node in nodes)
        bootstrap.hear("report.html")
        assert verify(bootstrap.data / "run").verified == COMPLETE
        assert json.loads(project.fetch("/api/v1/result"))["estimate"] == result["estimate"]
        assert json.loads(project.fetch("/api/v1/result"))["edition"] == "participants"
        assert b"<html" in project.fetch("/report.html")
        wait_for(lambda: bootstrap.facts()["State"]["Health"]["Status"] == "healthy", "bootstrap is healthy")
        for container in (bootstrap, *nodes):
            facts = container.facts()
            assert all(hardened(facts)), hardened(facts)
            assert not SECRETS.search(json.dumps([facts["Config"]["Env"], facts["Config"]["Cmd"], facts["Path"]]))
        owner_only(nodes)
        assert len(list((bootstrap.data / "run" / "curator" / "skeletons").iterdir())) == NODES
        # Whoever comes when all seats are taken is told so, and is not started again for ever.
        project.up("--scale", f"node={NODES + 1}", "--no-recreate")
        late = project.container("node", NODES + 1)
        late.hear("no join token for this node")


def assert_refused(place: Path, network: str, token: JoinToken) -> None:
    """Whoever is in the network and has a token that bootstrap did not make."""
    own = place / "stranger"
    write_identity(own, bytes([7] * 32))
    (own / "own.token").write_text(JoinToken(token.address, token.bootstrap_public, bytes(16), 1).to_text())
    (own / "node.toml").write_text(NODE.replace("/data/", ""))
    command = ["run", "--rm", "--user", "0", "--network", network, "--volume", f"{own}:/own", IMAGE]
    done = subprocess.run(
        ["docker", *command, "node", "/own/node.toml", "--out", "/own/run"],
        env=engine(), capture_output=True, text=True, check=False, timeout=GUARD_S,
    )  # fmt: skip
    assert (done.returncode, "not valid here" in done.stderr) == (5, True), done.stderr


@pytest.mark.parametrize("file", [TCP, MQTT])
def test_containers_come_back_from_whatever_happens_to_them(tmp_path: Path, file: str) -> None:
    """Nodes before bootstrap; one stopped, one paused, one without a network, one killed; broker and bootstrap too."""
    with Project(tmp_path, file, patient(12_000), P2PDP_NODES=str(NODES)) as project:
        project.up("--no-deps", "node")
        nodes, bootstrap = project.nodes(NODES), project.container("bootstrap")
        for node in nodes:
            node.hear("waiting for a join token")
        project.up("--no-recreate")
        nodes[4].hear("this node is user")
        docker("update", "--cpus", "0.02", nodes[4].name)  # so that there is a run to come back to
        network, squatter = f"{project.name}_run", f"{project.name}-squatter"
        nodes[0].wait_for_growth()

        docker("stop", nodes[0].name)
        assert nodes[0].code == 130, "SIGTERM ends a node in good order"
        docker("start", nodes[0].name)
        nodes[0].wait_for_growth()

        docker("pause", nodes[1].name)
        seen = []
        while seen != (seen := [node.ledger_bytes for node in nodes]):  # until all wait for it
            nodes[1].facts()
        if file == TCP:
            assert_refused(tmp_path, network, JoinToken.from_text((bootstrap.data / TOKEN).read_text()))
        docker("unpause", nodes[1].name)
        nodes[1].wait_for_growth()

        docker("network", "disconnect", network, nodes[2].name)
        docker("network", "connect", network, nodes[2].name)
        nodes[2].wait_for_growth()

        old = nodes[3].address
        docker("kill", nodes[3].name)
        asleep = ["--name", squatter, "--entrypoint", "sleep", IMAGE, "600"]
        docker("run", "--detach", "--rm", "--network", network, *asleep)
        docker("start", nodes[3].name)
        assert nodes[3].address != old
        docker("kill", squatter)
        nodes[3].wait_for_growth()

        if file == MQTT:
            docker("restart", project.container("broker").name)
            nodes[0].wait_for_growth()

        docker("kill", bootstrap.name)
        docker("start", bootstrap.name)
        docker("update", "--cpus", "2", nodes[4].name)
        result = project.result()
        assert (result["nodes"], result["missing"]) == (NODES, [])
        assert ended(nodes) == [0] * NODES
        whole = tmp_path / "whole"
        shutil.copytree(bootstrap.data / "run", whole, ignore=shutil.ignore_patterns("skeletons"))
        for node in nodes:
            place = next((node.data / "run" / "nodes").iterdir())
            shutil.copytree(place, whole / "nodes" / place.name)
        assert verify(whole).verified == COMPLETE


def test_a_pairwise_sum_goes_on_without_a_container_that_is_killed_for_good(tmp_path: Path) -> None:
    """The others settle its masks; what it sent before it was gone may or may not be in the sum."""
    text = pairwise(NODES, terms="survivors_min = 3").replace("seed = 3", "min_nodes = 3\npatience_s = 6")
    with Project(tmp_path, MQTT, text, P2PDP_NODES=str(NODES)) as project:
        project.up("--no-deps", "node")
        nodes, bootstrap = project.nodes(NODES), project.container("bootstrap")
        project.up("--no-recreate")
        nodes[4].hear("this node is user")
        docker("kill", nodes[4].name)
        result = project.result()
        assert ended(nodes[:4]) == [0] * 4
        assert (result["protocol"], result["nodes"]) == ("pairwise.sum", NODES)
        survivors, missing = set(result["survivors"]), set(result["missing"])
        assert len(survivors) >= NODES - 1
        assert len(missing) == 1
        assert survivors | missing == set(range(NODES))
        assert -8 * result["standard_error"] <= result["estimate"] <= len(survivors) + 8 * result["standard_error"]
        assert verify(bootstrap.data / "run").problems == []


def test_the_image_is_small_and_holds_no_secret() -> None:
    engine()
    image, base = (json.loads(docker("image", "inspect", name))[0] for name in (IMAGE, BASE))
    assert image["Size"] - base["Size"] < IMAGE_BYTES_MAX
    assert image["Config"]["User"] == "10001:10001"
    assert image["Config"]["Entrypoint"] == ["p2pdp"]
    names = ["*.token", "*.key", "*.ledger", ".git"]
    any_of = [word for name in names for word in ("-o", "-name", name)][1:]
    held = docker("run", "--rm", "--user", "0", "--entrypoint", "find", IMAGE, "/", "-xdev", *any_of)
    assert held == ""
    assert docker("run", "--rm", IMAGE, "--version").startswith("p2pdp ")
    assert str(TOP) not in json.dumps(image["Config"])


def test_every_command_works_with_what_the_image_holds() -> None:
    """Large parts of its packages are left out: none of them may be missed, wherever it would be loaded."""
    samples = ["--volume", f"{TOP / 'deploy' / 'samples'}:/samples:ro"]
    docker("run", "--rm", "--network", "none", *samples, "--entrypoint", "python", IMAGE, "-c", EVERY_COMMAND)
