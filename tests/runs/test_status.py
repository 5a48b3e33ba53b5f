from __future__ import annotations

import fcntl
from dataclasses import replace
from pathlib import Path

import pytest

import p2pdp
from p2pdp.core.errors import NotReady, UsageError
from p2pdp.core.happenings import Happening, happening
from p2pdp.node.folder import NodeFolder
from p2pdp.runs.status import status_of
from p2pdp.runs.watching import HttpOptions, Watching, watched
from p2pdp.web.status import Status
from tests.support import small
from tests.support.finished_nodes import ME, finished_node

HTTP = HttpOptions("127.0.0.1:0", "1.2")


def memory(tmp_path: Path) -> p2pdp.Spec:
    return p2pdp.load_spec(small.spec_file(tmp_path), ['run.transport="memory"'])


def test_a_simulated_run_is_done(tmp_path: Path) -> None:
    result = p2pdp.simulate(small.spec_file(tmp_path), tmp_path / "run")
    found = status_of(str(tmp_path / "run"))
    assert (found.kind, found.state, found.at_work) == ("simulated", "done", False)
    assert (found.run_id, found.n, found.ready) == (result.run_id, result.nodes, result.nodes)
    assert found.headline == result.to_json()["headline"]
    assert found.next == f"p2pdp audit {tmp_path / 'run'}"


def test_a_local_run_is_done_at_work_or_interrupted(tmp_path: Path) -> None:
    place = tmp_path / "run"
    p2pdp.run(memory(tmp_path), place)
    found = status_of(str(place))
    assert (found.kind, found.state, found.at_work, found.enrolled) == ("local", "done", False, found.nodes)
    (place / "result.json").unlink()
    (place / "audit.json").unlink()
    stopped = status_of(str(place))
    assert (stopped.state, stopped.at_work, stopped.next) == ("interrupted", False, f"p2pdp resume {place}")
    with (place / "run.json").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        going = status_of(str(place))
    assert (going.state, going.at_work, going.next) == ("collecting", True, None)


def test_asking_leaves_nothing_behind(tmp_path: Path) -> None:
    place = tmp_path / "run"
    p2pdp.run(memory(tmp_path), place)
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
    status_of(str(place))
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*")} == before


def test_a_node_knows_its_own_part(tmp_path: Path) -> None:
    finished_node(tmp_path)
    found = status_of(str(tmp_path / "mine"))
    assert (found.kind, found.state, found.protocol) == ("node", "done", "walk.sum")
    (tmp_path / "mine" / "node" / "run.key").write_bytes(bytes(32))
    assert status_of(str(tmp_path / "mine")).state == "interrupted"
    assert ME not in found.excluded


def test_a_node_that_peers_found_set_back_says_so(tmp_path: Path) -> None:
    finished_node(tmp_path)
    (tmp_path / "mine" / "node" / "run.key").write_bytes(bytes(32))  # as before the end
    NodeFolder.known(tmp_path / "mine").keep_told({"problem": "the ledger was set back"})
    found = status_of(str(tmp_path / "mine"))
    assert (found.state, found.problems[0]) == ("interrupted", "the ledger was set back")
    assert found.next is not None
    assert "cannot go on" in found.next


def test_what_is_no_run(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "none"):
        with pytest.raises(UsageError, match=str(place)):
            status_of(str(place))
    with pytest.raises(UsageError, match="--token-file"):
        status_of(str(tmp_path), tmp_path / "token")
    for url in ("http://", "http://a:b/", "https://[x"):
        with pytest.raises(UsageError, match="address of a server"):
            status_of(url)


def test_a_server_is_asked_with_its_token(tmp_path: Path) -> None:
    told: list[Happening] = []
    options = replace(HTTP, token_file=tmp_path / "token")

    def first(now_s: float) -> Status:
        return Status(role="bootstrap", began_s=now_s, run_id="ab", protocol="walk.sum", nodes=3)

    with watched(Watching(options), first, None, told.append) as watch:
        url = next(str(one.facts["url"]) for one in told if one.event == "http")
        watch.notify(happening("listening", how="h", tokens=3, address="a", folder="f", identity="k"))
        watch.notify(happening("roster", n=3))
        watch.notify(happening("excluded", user=2))
        with pytest.raises(UsageError, match="--token-file"):
            status_of(url)
        found = status_of(url, tmp_path / "token")
        assert (found.kind, found.state, found.run_id, found.n, found.excluded) == ("http", "gathering", "ab", 3, [2])
        assert (tmp_path / "token").read_text().strip() not in repr(found)
    with pytest.raises(NotReady, match="does not answer"):
        status_of(url, tmp_path / "token")
