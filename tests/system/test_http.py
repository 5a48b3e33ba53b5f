"""The HTTP side of real processes: a run is followed to its end, killed, resumed, its report seen in a browser."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from tests.support.across import SHARED, Across, Started
from tests.support.browser import browser as browser  # noqa: PLC0414 - a fixture
from tests.support.browser import complaints
from tests.support.launched import complete, wait_for
from tests.support.metrics import samples
from tests.support.sources import TOP

HTTP = ("--http", "127.0.0.1:0")
FILES = ("result.json", "audit.json", "report.html", "participants.json", "participants.html")


def url_of(process: Started) -> str:
    process.wait_until_said("status and metrics are at http")
    found = re.findall(r"are at (https?://\S+/)", process.said)
    return str(found[-1])


def get(url: str, authorization: str | None = None) -> tuple[int, str]:
    headers = {} if authorization is None else {"Authorization": authorization}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - our own server's
    try:
        with urllib.request.urlopen(request, timeout=240) as answer:  # noqa: S310 - same
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def run_of(url: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(get(f"{url}api/v1/run")[1])
    return document


def test_a_run_is_followed_over_http_from_enrolment_to_the_report(tmp_path: Path, browser: str) -> None:
    with Across(tmp_path, complete(3, 40), 3) as run:
        bootstrap = run.bootstrap(*HTTP, "--http-stay", "--http-auditor-token-file", "auditor")
        bearer = f"Bearer {(tmp_path / 'auditor').read_text().strip()}"
        url = url_of(bootstrap)
        assert get(f"{url}healthz")[0] == 200
        assert json.loads(get(f"{url}readyz")[1]) == {"ready": True, "state": "enrolling"}
        assert get(f"{url}api/v1/result")[0] == 404
        nodes = [run.node(0, *SHARED, *HTTP), run.node(1, *SHARED)]
        wait_for(lambda: run_of(url)["enrolled"] == 2, "two nodes have enrolled")
        node_url = url_of(nodes[0])
        assert json.loads(get(f"{node_url}readyz")[1]) == {"ready": True, "state": "enrolling"}
        assert samples(get(f"{node_url}metrics")[1])['p2pdp_state{state="enrolling"}'] == 1
        assert get(f"{node_url}api/v1/run")[0] == get(f"{node_url}report.html")[0] == 404
        nodes.append(run.node(2, *SHARED))
        wait_for(lambda: run_of(url)["state"] == "done", "the run is over")
        estimates = [node.document()["estimate"] for node in nodes]
        edition = json.loads(get(f"{url}api/v1/result")[1])
        result = json.loads(get(f"{url}api/v1/auditor/result", bearer)[1])
        assert (edition["edition"], edition["run_id"]) == ("participants", result["run_id"])
        assert edition["estimate"] == result["estimate"] == estimates[0]
        assert not edition.keys() & {"seconds", "messages", "bytes", "truth", "error", "faults", "outputs", "baselines"}
        assert {claim["conditioning"] for claim in edition["claims"]} == {"a-priori"}
        wait_for(lambda: bootstrap.out.read_text().endswith("}\n"), "the result is printed while HTTP stays")
        assert result == json.loads((tmp_path / "boot" / "result.json").read_text())
        assert json.loads(get(f"{url}api/v1/audit", bearer)[1])["verified"] == "complete"
        for path in (
            "api/v1/audit",
            "api/v1/runs",
            "api/v1/auditor/result",
            "api/v1/auditor/run",
            "auditor/report.html",
        ):
            assert get(f"{url}{path}")[0] == get(f"{url}{path}", "Bearer wrong")[0] == 401
        status = json.loads(get(f"{url}api/v1/auditor/run", bearer)[1])
        assert (status["n"], status["ready"], status["excluded"], status["faults"]) == (3, 3, [], {})
        assert list(status["seconds"]) == [
            "starting", "enrolling", "gathering", "running", "closing", "collecting", "done",
        ]  # fmt: skip
        metrics = samples(get(f"{url}auditor/metrics", bearer)[1])
        assert metrics["p2pdp_nodes_ready"] == metrics["p2pdp_nodes_enrolled"] == 3
        assert metrics["process_resident_memory_bytes"] > 1 << 20
        (listed,) = json.loads(get(f"{url}api/v1/runs", bearer)[1])["runs"]
        assert (listed["run_id"], "folder" in listed) == (result["run_id"], False)
        see_the_report(browser, f"{url}report.html", tmp_path)
        bootstrap.process.send_signal(signal.SIGTERM)
        assert bootstrap.document()["run_id"] == result["run_id"]
    modes = {name: (tmp_path / "boot" / name).stat().st_mode & 0o777 for name in FILES}
    assert [name for name, mode in modes.items() if mode & 0o077] == ["participants.json", "participants.html"]


def see_the_report(browser: str, url: str, place: Path) -> None:
    """In a browser that reaches this machine only: nothing is fetched, and the policies are content."""
    command = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--enable-logging=stderr",
        f"--user-data-dir={place / 'profile'}", "--dump-dom", url,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert complaints(done) == []
    for part in ('id="summary"', 'id="claims"', "</footer>\n</body></html>"):
        assert part in done.stdout


def test_a_killed_bootstrap_comes_back_with_its_status_and_its_token(tmp_path: Path) -> None:
    options = (*HTTP, "--http-token-file", "token")
    with Across(tmp_path, complete(3, 40), 3) as run:
        bootstrap = run.bootstrap(*options)
        nodes = [run.node(0), run.node(1)]
        bearer = f"Bearer {(tmp_path / 'token').read_text().strip()}"
        basic = "Basic " + b64encode(b"anybody:" + (tmp_path / "token").read_bytes().strip()).decode()
        url = url_of(bootstrap)
        assert get(f"{url}api/v1/run")[0] == get(f"{url}metrics", "Bearer wrong")[0] == 401
        assert get(f"{url}readyz")[0] == 200
        wait_for(lambda: json.loads(get(f"{url}api/v1/run", bearer)[1])["enrolled"] == 2, "two have enrolled")
        bootstrap.kill()
        bootstrap = run.bootstrap(*options)
        url = url_of(bootstrap)
        wait_for(lambda: json.loads(get(f"{url}api/v1/run", basic)[1])["enrolled"] == 2, "two are enrolled still")
        assert json.loads(get(f"{url}api/v1/run", basic)[1])["resumed"] is True
        nodes.append(run.node(2))
        bootstrap.document()
        for node in nodes:
            node.document()
        said = "".join(each.said for each in run.started)
        assert bearer.split()[1] not in said
        again = run.bootstrap_again(*options, "--http-stay")
        url = url_of(again)
        wait_for(lambda: json.loads(get(f"{url}api/v1/run", bearer)[1])["state"] == "done", "it is served again")
        shown = json.loads(get(f"{url}api/v1/run", bearer)[1])
        assert (shown["n"], shown["enrolled"], shown["ready"], shown["excluded"]) == (3, 3, 3, [])
        assert "<title>user 2 takes part</title>" in get(url, bearer)[1]
        again.process.send_signal(signal.SIGINT)
        again.document()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--http", "0.0.0.0:0"), "--http-open"),
        (("--http", "here"), "--http here"),
        (("--http-stay",), "--http HOST:PORT"),
        (("--http", "127.0.0.1:0", "--http-cert", "c"), "both"),
        (("--index", "mysql://x/y"), "--index"),
    ],
)
def test_wrong_options_end_it_in_one_sentence(tmp_path: Path, options: tuple[str, ...], says: str) -> None:
    with Across(tmp_path, complete(3, 40), 3) as run:
        run.bootstrap_again(*options).fails(2, says)


def test_a_light_node_loads_neither_a_web_server_nor_a_database(tmp_path: Path) -> None:
    script = (
        "import sys; from p2pdp.cli.main import main; main(sys.argv[1:]); "
        "heavy = {'aiohttp', 'sqlalchemy', 'scipy', 'networkx', 'matplotlib'}; "
        "print(*sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    with Across(tmp_path, complete(2, 20), 2) as run:
        run.bootstrap()
        other = run.node(0)
        done = subprocess.run(
            [sys.executable, "-c", script, "node", "n1.toml", "--out", "n1", "--json"],
            cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True,
            env={**os.environ, "PYTHONPATH": str(TOP)},
        )  # fmt: skip
        other.document()
    assert done.stderr.splitlines()[-1] == "", done.stderr
