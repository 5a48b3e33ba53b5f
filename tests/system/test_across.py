"""Runs across machines by the documented command line: any order, wrong things, restarts, and what is left of them."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path

from p2pdp import api
from p2pdp.auditor.verify import COMPLETE
from p2pdp.crypto.tokens import JoinToken
from p2pdp.ledger.records import LEDGER_MAGIC, SKELETON_MAGIC, to_skeleton
from p2pdp.runs.audit import audit, verify
from tests.support.across import SHARED, Across
from tests.support.gossips import gossip
from tests.support.launched import complete, judge_folder, ring, wait_for

UNDER_WAY = 50  # frames


def test_nodes_wait_for_bootstrap_and_skeletons_tell_as_much_as_ledgers(tmp_path: Path) -> None:
    with Across(tmp_path, complete(3, 60), 3) as run:
        run.bootstrap().interrupt()
        nodes = run.all_nodes(*SHARED)
        for node in nodes:
            node.wait_until_said("waiting for bootstrap at 127.0.0.1:")
        bootstrap = run.bootstrap()
        nodes[0].wait_until_said("the curator can read this node's skeleton")
        result = bootstrap.document()
        told = [node.document() for node in nodes]
        for number, document in enumerate(told):
            assert (document["run_id"], document["user"], document["nodes"]) == (result["run_id"], number, 3)
            assert document["estimate"] == result["estimate"]
            assert (document["private_kept"], document["excluded"]) == (True, False)
        assert (result["truth"], result["error"], result["missing"], result["bytes"]) == (None, None, [], None)
        assert result["baselines"]["local"]["standard_error"] > result["baselines"]["central"]["standard_error"]
        boot, whole = tmp_path / "boot", run.gathered()
        assert verify(boot).verified == COMPLETE
        assert json.loads((boot / "audit.json").read_text()) == audit(whole, None, None, allow_missing=False).to_json()
        assert judge_folder(whole).verification.verified == COMPLETE
        again = run.bootstrap_again().document()
        assert again == result
        assert run.start("resume", "resume", "boot", "--json").document() == result
        assert run.node(1).document()["estimate"] == result["estimate"]
        run.start("resume", "resume", "n1").fails(2, "p2pdp node")


def test_skeletons_that_are_sealed_to_the_auditor_tell_it_as_much_and_the_curator_nothing(tmp_path: Path) -> None:
    public = api.keygen(tmp_path / "auditor", auditor=True)
    key = tmp_path / "auditor" / "auditor.key"
    with Across(tmp_path, complete(3, 60) + '[audit]\nkey = "auditor/auditor.pub"\n', 3) as run:
        bootstrap = run.bootstrap()
        nodes = run.all_nodes(*SHARED)
        result = bootstrap.document()
        assert [node.document()["estimate"] for node in nodes] == [result["estimate"]] * 3
        assert all(f"sealed to the auditor's key {public}" in node.said for node in nodes)
        assert result["messages"] is None
        assert "p2pdp audit boot --key" in bootstrap.said
    boot, whole = tmp_path / "boot", run.gathered()
    sealed = [file.stat().st_size for file in sorted(boot.rglob("*.sealed"))]
    assert len(sealed) == 3
    assert len(set(sealed)) == 1
    assert not list(boot.rglob("*.skeleton"))
    lengths = {len(to_skeleton(run.ledger(number).read_bytes())) for number in range(3)}
    assert len(lengths) > 1, "the lengths would have told the curator how often each was visited"
    expected = audit(whole, None, None, allow_missing=False).to_json()
    assert audit(boot, None, None, allow_missing=False, key=key).to_json() == expected
    assert verify(boot, key).verified == COMPLETE


def test_a_node_that_is_killed_comes_back_at_another_port(tmp_path: Path) -> None:
    with Across(tmp_path, complete(4, 2000), 4) as run:
        bootstrap = run.bootstrap()
        nodes = run.all_nodes(*SHARED, stands={2: [UNDER_WAY], 0: [4 * UNDER_WAY]})
        for victim in (2, 0):
            run.stands(victim)
            nodes[victim].kill()
            nodes[victim] = run.node(victim, *SHARED)
        result = bootstrap.document()
        assert [node.document()["estimate"] for node in nodes] == [result["estimate"]] * 4
        assert result["missing"] == []
        assert judge_folder(run.gathered()).verification.verified == COMPLETE
        assert not list(tmp_path.rglob("run.key"))


def test_bootstrap_is_killed_and_a_ring_goes_on(tmp_path: Path) -> None:
    with Across(tmp_path, ring(3, 500), 3) as run:
        bootstrap = run.bootstrap()
        nodes = run.all_nodes("--keep-private", stands={0: [UNDER_WAY]})
        run.stands(0)
        bootstrap.kill()
        nodes[0].go_on()
        run.wait_for_growth(0)
        bootstrap = run.bootstrap()
        result = bootstrap.document()
        for node in nodes:
            assert node.document()["estimate"] == result["estimate"]
        assert result["messages"] is None, "nobody handed in a skeleton"
        assert judge_folder(run.gathered()).verification.verified == COMPLETE
        assert {problem["what"] for problem in verify(tmp_path / "boot").problems} == {"the ledger is missing"}


def test_an_interrupted_node_goes_on_and_keeps_what_its_owner_wants(tmp_path: Path) -> None:
    with Across(tmp_path, complete(3, 1000), 3) as run:
        bootstrap = run.bootstrap()
        nodes = [run.node(0), run.node(1, "--keep-private", stands=[UNDER_WAY])]
        nodes[1].wait_until_said("offers this run")
        run.node(1).fails(6, "another process")
        nodes.append(run.node(2))
        run.stands(1)
        nodes[1].interrupt()
        assert nodes[1].said.splitlines()[-1].startswith("p2pdp: interrupted; the same command")
        nodes[1] = run.node(1, "--keep-private")
        result = bootstrap.document()
        for node in nodes:
            assert node.document()["estimate"] == result["estimate"]
    kept = [(tmp_path / f"n{number}" / "node" / "private.ledger").read_bytes() for number in range(3)]
    magic = len(LEDGER_MAGIC)
    assert [data[:magic] for data in kept] == [SKELETON_MAGIC, LEDGER_MAGIC, SKELETON_MAGIC]
    for number in range(3):
        assert verify(tmp_path / f"n{number}").verified == COMPLETE
        assert (tmp_path / f"n{number}" / "node" / "private.ledger").stat().st_mode & 0o777 == 0o600


def test_a_node_that_is_silent_for_too_long_learns_that_it_is_out(tmp_path: Path) -> None:
    text = complete(4, 1200).replace("patience_s = 6", "patience_s = 3")
    with Across(tmp_path, text, 4) as run:
        bootstrap = run.bootstrap()
        nodes = run.all_nodes(*SHARED, stands={3: [UNDER_WAY]})
        bootstrap.wait_until_said("user 3 is excluded")
        nodes[3].go_on()
        assert nodes[3].document()["excluded"]
        assert "excluded this node" in nodes[3].said
        result = bootstrap.document()
        assert (result["missing"], nodes[0].document()["estimate"]) == ([3], result["estimate"])


def test_what_is_wrong_with_a_node_is_one_sentence(tmp_path: Path) -> None:
    with Across(tmp_path, complete(3, 60), 3) as run, socket.create_server(("127.0.0.1", 0)) as taken:
        run.bootstrap()
        first = run.node(0)
        first.wait_until_said("offers this run")
        wait_for(lambda: "1 of 3" in run.started[0].said, "the first node has enrolled")
        text = (tmp_path / "boot" / "tokens" / "0001.token").read_text()
        token = JoinToken.from_text(text)
        foreign = JoinToken(token.address, bytes(range(32)), token.secret, 1).to_text()
        unknown = JoinToken(token.address, token.bootstrap_public, bytes(16), 1).to_text()
        (tmp_path / "open.key").write_text("01" * 32)
        (tmp_path / "open.key").chmod(0o644)
        port = taken.getsockname()[1]
        mistyped = text.strip()[:-1] + ("b" if text.strip().endswith("a") else "a")
        cases: list[tuple[dict[str, str], str, int, tuple[str, ...]]] = [
            ({"token": mistyped}, "", 2, ("token", "mistyped")),
            ({"token": foreign}, "", 5, ("not the bootstrap named in the join token",)),
            ({"token": unknown}, "", 5, ("not valid here",)),
            ({"token": "boot/tokens/0000.token"}, "", 5, ("used by another identity",)),
            ({"identity": "id0/identity.key"}, "", 5, ("is enrolled already",)),
            ({"identity": "nowhere.key"}, "", 2, ("nowhere.key",)),
            ({"identity": "open.key"}, "", 2, ("chmod 600",)),
            ({"listen": f"127.0.0.1:{port}"}, "", 6, ("listen", str(port), "in use")),
            ({}, "[accept]\nsigma_min = 2\n", 5, ("sigma_min", "sigma 1,", "asks for 2")),
            ({}, "[accept]\nclip = [0, 0.5]\n", 5, ("clip", "[0, 1]", "[0, 0.5]")),
            ({}, '[accept]\nprotocols = ["walk.histogram"]\n', 5, ("protocols", "walk.sum", "walk.histogram")),
            ({}, "clip = [0.0, 2.0]\n", 2, ("clip", "[0, 2]", "[0, 1]")),
            ({}, 'path = "x.csv"\n', 2, ("path",)),
        ]
        started = []
        for number, (changed, more, _, _) in enumerate(cases):
            run.configure(1, more=more, **changed)
            (tmp_path / "n1.toml").rename(tmp_path / f"case{number}.toml")
            started.append(run.start("case", "node", f"case{number}.toml", "--out", f"case{number}"))
        for process, (_, _, code, words) in zip(started, cases, strict=True):
            process.fails(code, *words)


def test_neighbours_that_are_not_pinned_are_left(tmp_path: Path) -> None:
    with Across(tmp_path, complete(2, 10), 2) as run:
        bootstrap = run.bootstrap()
        other = (tmp_path / "id1" / "identity.pub").read_text().strip()
        run.configure(0, more=f'[accept]\npeers = ["{"ab" * 32}"]\n')
        first, second = run.all_nodes()
        first.fails(5, "peers", other, "not pinned")
        run.configure(0, more='[accept]\npeers = "id1/identity.pub"\n')
        assert run.node(0).document()["estimate"] == bootstrap.document()["estimate"] == second.document()["estimate"]


def test_who_comes_too_late_is_told(tmp_path: Path) -> None:
    """Of three tokens two are used; the run cannot end before the third, since one of its nodes is asleep."""
    with Across(tmp_path, complete(2, 10).replace("patience_s = 6", "patience_s = 60"), 2, tokens=3) as run:
        bootstrap = run.bootstrap()
        early = [run.node(0)]
        bootstrap.wait_until_said("1 of 2")
        early[0].process.send_signal(signal.SIGSTOP)
        early.append(run.node(2))
        bootstrap.wait_until_said("roster is closed")
        run.node(1).fails(5, "started without this node")
        early[0].go_on()
        assert [node.document()["user"] for node in early] == [0, 1]
        assert bootstrap.document()["nodes"] == 2


def test_what_is_wrong_with_bootstrap_is_one_sentence(tmp_path: Path) -> None:
    with Across(tmp_path, complete(3, 60), 3) as run, socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run.bootstrap().interrupt()
        before = sorted(path.name for path in (tmp_path / "boot").iterdir())
        csv = ("--set", 'data.kind="csv"', "--set", 'data.path="x.csv"', "--set", "run.nodes=1")
        cases = [
            (("127.0.0.1:0", "3", "boot", "--set", "noise.sigma=2.0"), 2, ("another spec",)),
            (("127.0.0.1:0", "4", "boot"), 2, ("--tokens 4", "3")),
            (("x", "3", "fresh"), 2, ("--listen x", "HOST:PORT")),
            (("127.0.0.1:0", "3", "boot", "--address", "127.0.0.2:0"), 2, ("tokens name",)),
            (("0.0.0.0:0", "3", "fresh"), 2, ("--address",)),
            (("127.0.0.1:0", "2", "fresh"), 2, ("--tokens 2", "3")),
            ((f"127.0.0.1:{port}", "3", "other"), 6, ("in use", str(port))),
            (("127.0.0.1:0", "3", "id0"), 2, ("not empty",)),
            (("127.0.0.1:0", "3", "fresh", *csv), 2, ("seed",)),
            (("127.0.0.1:0", "3", "fresh", "--set", 'run.transport="mqtt"'), 2, ("--listen", "nobody listens")),
        ]
        started = [
            run.start("case", "bootstrap", "spec.toml", "--listen", listen, "--tokens", tokens, "--out", *more)
            for (listen, tokens, *more), _, _ in cases
        ]
        for process, (_, code, words) in zip(started, cases, strict=True):
            process.fails(code, *words)
        assert not (tmp_path / "fresh").exists()
        assert sorted(path.name for path in (tmp_path / "boot").iterdir()) == before


def test_where_nothing_is_published_each_user_has_a_result_of_its_own(tmp_path: Path) -> None:
    text = gossip(3, "complete", "rounds = 4").replace("seed = 5\n", "")
    with Across(tmp_path, text, 3) as run:
        bootstrap = run.bootstrap()
        nodes = run.all_nodes(*SHARED)
        assert bootstrap.document()["estimate"] is None
        told = [node.document() for node in nodes]
    assert all(isinstance(one["estimate"], float) and "stopped" not in one for one in told)
    assert max(one["estimate"] for one in told) - min(one["estimate"] for one in told) < 1e-6  # but for dithers
