"""Parts of the live campaign for which a run has a machine for each owner: with a database, and in containers.

* `postgres`: bootstrap and nodes as their owners start them, with the index of runs in a real PostgreSQL. Nodes,
  bootstrap and the database are killed and started again. The run is complete and verifies, and an index made anew from
  its folder is the one that is there.
* `containers`: the compose project over TCP or MQTT. Containers of nodes, bootstrap and broker are killed, paused and
  started again. The run is complete, and bootstrap's folder verifies.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final

from p2pdp.auditor.verify import COMPLETE
from p2pdp.core.errors import P2pdpError
from p2pdp.index.store import Index
from p2pdp.runs.audit import verify
from tests.campaigns.oracle import Violation
from tests.campaigns.running import Judged
from tests.support.across import SHARED, Across
from tests.support.databases import WHY_NOT, postgres, programs
from tests.support.engine import MQTT, TCP, Container, Project, docker, ended
from tests.support.index_rows import dump
from tests.support.launched import complete
from tests.support.missing import missing

NODES: Final = 4
STRIKES: Final = 6


def patient(hops: int) -> str:
    """A spec whose users are not put out for the time that a machine takes to start."""
    return complete(NODES, hops).replace("patience_s = 6", "patience_s = 60").replace("seed = 1\n", "")


def with_database(seed: int) -> Judged:
    found = programs()
    if found is None:
        missing(WHY_NOT)
    dice = Random(f"postgres {seed}")  # noqa: S311 - what is thrown is no secret
    done: list[str] = []
    with (
        tempfile.TemporaryDirectory(prefix="p2pdp-live-") as folder, postgres(found) as server,
        Across(Path(folder), patient(6000), NODES) as run,
    ):  # fmt: skip
        options = "--index", server.url
        bootstrap, nodes, serving = run.bootstrap(*options), run.all_nodes(*SHARED), True
        for _ in range(STRIKES):
            run.wait_for_growth(0, dice.randrange(1000, 20_000))
            what = dice.choice(("node", "node", "bootstrap", "database"))
            done.append(what)
            if what == "node" and nodes[at := dice.randrange(NODES)].running:
                nodes[at].kill()
                nodes[at] = run.node(at, *SHARED)
            elif what == "bootstrap" and bootstrap.running:
                bootstrap.kill()
                bootstrap = run.bootstrap_again(*options)
            elif what == "database":
                (server.stop if serving else server.start)()
                serving = not serving
        codes = [process.end() for process in (bootstrap, *nodes)]
        if not serving:
            server.start()
        problems = _judged(codes, Path(folder, "boot"))
        if not problems:
            problems = _index_problems(run, server.url)
    return Judged(problems, None, f"postgres seed {seed}: {', '.join(done)}", Counter(done))


def _index_problems(run: Across, url: str) -> list[Violation]:
    """Make the index anew, and compare it with one that is written over it."""
    index, dumps = Index(url), []
    for more in (("--rebuild",), ()):
        code = run.start("index", "index", "boot", "--index", url, "--json", *more).end()
        if code != 0:
            return [Violation("index", f"making it ended with {code}")]
        dumps.append(dump(index))
    states = [row[6] for row in dumps[0]["p2pdp_runs"]]
    whole = dumps[0] == dumps[1] and states == ["done"] and len(dumps[0]["p2pdp_participants"]) == NODES
    return [] if whole else [Violation("index", f"it is not what the folder says; states {states}")]


def in_containers(seed: int) -> Judged:
    dice = Random(f"containers {seed}")  # noqa: S311 - what is thrown is no secret
    file, done = dice.choice((TCP, MQTT)), list[str]()
    with (
        tempfile.TemporaryDirectory(prefix="p2pdp-live-") as folder,
        Project(Path(folder), file, patient(12_000), P2PDP_NODES=str(NODES)) as project,
    ):
        project.up()
        nodes, bootstrap = project.nodes(NODES), project.container("bootstrap")
        roles = [bootstrap, project.container("broker")] if file == MQTT else [bootstrap]
        nodes[0].hear("this node is user")
        docker("update", "--cpus", "0.05", nodes[0].name)  # so that there is a run to come back to
        for _ in range(STRIKES):
            with suppress(AssertionError):  # the run may be over
                nodes[0].wait_for_growth(dice.randrange(500, 5000))
            who = dice.choice((*nodes, *nodes, *roles))
            way = dice.choice((_killed, _killed, _paused))
            done.append(f"{way.__name__} {who.name.split('-')[-2]}")
            way(who)
        docker("update", "--cpus", "2", nodes[0].name)
        project.result()
        problems = _judged(ended(nodes), bootstrap.data / "run")
    return Judged(problems, None, f"containers seed {seed}: {file}: {', '.join(done)}", Counter(done))


def _killed(container: Container) -> None:
    if container.state == "running":
        with suppress(AssertionError):  # it may end meanwhile
            docker("kill", container.name)
        docker("start", container.name)


def _paused(container: Container) -> None:
    if container.state == "running":
        with suppress(AssertionError):
            docker("pause", container.name)
            docker("unpause", container.name)


def _judged(codes: Sequence[int], folder: Path) -> list[Violation]:
    if any(codes):
        return [Violation("live", f"ended with {list(codes)}")]
    copied = Path(tempfile.mkdtemp(prefix="p2pdp-live-"))
    try:
        found = verify(shutil.copytree(folder, copied / "run", dirs_exist_ok=True))
    except P2pdpError as error:
        return [Violation("ledgers", str(error)[:500])]
    finally:
        shutil.rmtree(copied, ignore_errors=True)
    if found.problems or found.verified != COMPLETE:
        return [Violation("ledgers", f"{found.verified}: {found.problems[:3]}")]
    result = json.loads((folder / "result.json").read_text())
    return [Violation("out", f"put out: {result['missing']}")] if result["missing"] else []


MACHINES: Final[dict[str, Callable[[int], Judged]]] = {"postgres": with_database, "containers": in_containers}
