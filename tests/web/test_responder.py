from __future__ import annotations

import json
from typing import Any

import pytest

from p2pdp.report.page.style import POLICY
from p2pdp.web.guard import Guard
from p2pdp.web.live import LIVE_POLICY, SCRIPT, SCRIPT_PATH
from p2pdp.web.responder import Responder
from tests.support.shown import AUDIT, PARTICIPANTS, PARTICIPANTS_PAGE, RESULT, Shown, asked, first, over

TOKEN = "0123456789abcdef"
AUDITORS = "fedcba9876543210"
FOR_AUDITOR = [
    *("/auditor", "/auditor/events", "/auditor/metrics", "/auditor/report.html"),
    *("/api/v1/auditor/run", "/api/v1/auditor/result", "/api/v1/audit", "/api/v1/runs"),
]
GUIDE = ["/guide", "/guide/trust", "/guide/walks"]
PATHS = [
    *"/ /events /live.js /healthz /readyz /metrics /openapi.json /report.html /api/v1/run /api/v1/result".split(),
    *GUIDE, *FOR_AUDITOR,
]  # fmt: skip
PROBES = ("/healthz", "/readyz")
BEARER = {"authorization": f"Bearer {AUDITORS}"}


def responder(shown: Shown | None = None, token: str | None = None, auditors: str | None = AUDITORS) -> Responder:
    return Responder(shown or Shown(), Guard((), token, auditors), "1.2")


def described_paths(description: dict[str, Any]) -> list[str]:
    """The paths of a description, with each topic in the place of its parameter."""
    found = []
    for path, item in description["paths"].items():
        named = [one for one in item["get"].get("parameters", []) if one["in"] == "path"]
        found += [path.replace("{topic}", topic) for one in named for topic in one["schema"]["enum"]] or [path]
    return sorted(found)


@pytest.mark.parametrize("path", PATHS)
def test_each_path_is_answered_and_described(path: str) -> None:
    answer = responder().answer(asked(path, **BEARER))
    assert answer.status == 200
    described = json.loads(responder().answer(asked("/openapi.json")).body)
    assert described_paths(described) == sorted(PATHS)


def test_documents_and_pages_are_given_as_they_are() -> None:
    shown = Shown()
    expected = {
        "/api/v1/result": PARTICIPANTS,
        "/report.html": PARTICIPANTS_PAGE,
        "/api/v1/auditor/result": RESULT,
        "/api/v1/audit": AUDIT,
        "/auditor/report.html": shown.report,
    }
    for path, body in expected.items():
        answer = responder(shown).answer(asked(path, **BEARER))
        assert answer.body == body
        if path.endswith("html"):
            assert answer.content_type.startswith("text/html")
            assert answer.policy.startswith(POLICY)
    assert json.loads(responder().answer(asked("/api/v1/run")).body)["state"] == "done"


@pytest.mark.parametrize("path", FOR_AUDITOR)
def test_what_depends_on_the_route_is_for_the_auditors_token_alone(path: str) -> None:
    for token in (None, TOKEN):
        guarded = responder(token=token)
        assert guarded.answer(asked(path)).status == 401
        assert guarded.answer(asked(path, authorization=f"Bearer {TOKEN}")).status == 401
        assert guarded.answer(asked(path, **BEARER)).status == 200
        nobody = responder(token=token, auditors=None)
        for given in ({}, {"authorization": f"Bearer {TOKEN}"}, BEARER):
            assert nobody.answer(asked(path, **given)).status == 403


def test_what_participants_read_tells_no_duration_fault_or_memory() -> None:
    shown = Shown(over().counted(2, {"foreign_frame": 3}))
    status = json.loads(responder(shown).answer(asked("/api/v1/run")).body)
    whole = json.loads(responder(shown).answer(asked("/api/v1/auditor/run", **BEARER)).body)
    assert whole.keys() - status.keys() == {"seconds", "faults", "restarts"}
    assert status.items() <= whole.items()
    metrics = responder(shown).answer(asked("/metrics")).body.decode()
    more = responder(shown).answer(asked("/auditor/metrics", **BEARER)).body.decode()
    for name in ("p2pdp_state_seconds", "p2pdp_faults_total", "process_resident_memory_bytes"):
        assert name in more
        assert name not in metrics


@pytest.mark.parametrize("path", ["/api/v1/result", "/api/v1/audit", "/report.html", "/auditor/report.html"])
def test_what_is_not_there_yet_is_not_found(path: str) -> None:
    answer = responder(Shown(first())).answer(asked(path, **BEARER))
    assert answer.status == 404
    assert b"not over" in answer.body


def test_readiness_follows_the_state() -> None:
    assert responder(Shown(first())).answer(asked("/readyz")).status == 503
    assert responder().answer(asked("/readyz")).status == 200


def test_a_node_has_its_page_probes_metrics_and_the_guide_only() -> None:
    node = responder(Shown(first("node")))
    found = [path for path in PATHS if node.answer(asked(path, **BEARER)).status != 404]
    assert found == [
        "/",
        "/events",
        "/live.js",
        "/healthz",
        "/readyz",
        "/metrics",
        "/openapi.json",
        *GUIDE,
        "/auditor/metrics",
    ]
    assert described_paths(json.loads(node.answer(asked("/openapi.json")).body)) == sorted(found)


@pytest.mark.parametrize("path", [*(path for path in PATHS if path not in FOR_AUDITOR), "/nothing"])
def test_all_but_the_probes_ask_for_the_token(path: str) -> None:
    guarded = responder(token=TOKEN)
    expected = 200 if path in PROBES else 401
    assert guarded.answer(asked(path)).status == expected
    assert guarded.answer(asked(path, authorization="Bearer wrong")).status == expected
    assert guarded.answer(asked(f"{path}?token={TOKEN}")).status == (400 if path in PROBES else 401)
    for token in (TOKEN, AUDITORS):
        assert guarded.answer(asked(path, authorization=f"Bearer {token}")).status in (200, 302, 404)


@pytest.mark.parametrize(
    "target",
    ["/..", "/../spec.toml", "/report.html/", "//report.html", "/%2e%2e/run.json", "/report%2ehtml",
     "/curator/view.ledger", "/api/v1/result/../../curator/view.ledger", "/report.html%00.json",
     "/tokens/0000.token", "/API/V1/RUN"],
)  # fmt: skip
def test_no_path_leads_to_another_file(target: str) -> None:
    assert responder().answer(asked(target)).status == 404


@pytest.mark.parametrize("target", ["", "report.html", "http://127.0.0.1/healthz", "*", "/" + "a" * 5000])
def test_a_target_is_a_short_path(target: str) -> None:
    assert responder().answer(asked(target)).status == 400


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get"])
def test_nothing_is_there_but_reading(method: str) -> None:
    answer = responder().answer(asked("/api/v1/run", method))
    assert (answer.status, dict(answer.headers)["Allow"]) == (405, "GET, HEAD")
    assert responder().answer(asked("/api/v1/run", "HEAD")).status == 200


def test_a_foreign_name_is_refused_before_anything_else() -> None:
    assert responder(token=TOKEN).answer(asked("/healthz", host="evil.example")).status == 421
    assert responder().answer(asked("/healthz", host=None)).status == 400


def test_a_question_has_no_body() -> None:
    assert responder().answer(asked("/healthz", content_length="0")).status == 200
    assert responder().answer(asked("/healthz", content_length="7")).status == 400
    assert responder().answer(asked("/healthz", transfer_encoding="chunked")).status == 400


@pytest.mark.parametrize(
    ("query", "status", "count"),
    [("", 200, 1), ("limit=1", 200, 1), ("offset=1&limit=1000", 200, 0), ("limit=0", 400, None),
     ("limit=1001", 400, None), ("limit=-1", 400, None), ("limit=", 400, None), ("limit=1&limit=1", 400, None),
     ("limit=٣", 400, None),
     ("order=run_id", 400, None), ("offset=99999999999999", 400, None), ("a&b&c&d&e&f&g&h&i", 400, None)],
)  # fmt: skip
def test_runs_are_listed_in_parts(query: str, status: int, count: int | None) -> None:
    answer = responder().answer(asked(f"/api/v1/runs?{query}", **BEARER))
    assert answer.status == status
    if count is not None:
        assert len(json.loads(answer.body)["runs"]) == count


def test_without_an_index_that_is_said() -> None:
    assert responder(Shown(index=False)).answer(asked("/api/v1/runs", **BEARER)).status == 503


def test_only_files_and_databases_take_time() -> None:
    slow = [path for path in PATHS if responder().takes_time(asked(f"{path}?a=b"))]
    documents = ["/auditor", "/auditor/report.html", "/api/v1/auditor/result", "/api/v1/audit", "/api/v1/runs"]
    assert slow == ["/", "/report.html", "/api/v1/result", *GUIDE, *documents]


def test_a_page_may_use_its_own_script_and_nothing_else() -> None:
    for path in ("/", "/auditor"):
        answer = responder().answer(asked(path, **BEARER))
        assert answer.policy == f"{LIVE_POLICY}; frame-ancestors 'none'"
        assert f'src="{SCRIPT_PATH}"' in answer.body.decode()
    script = responder().answer(asked(SCRIPT_PATH))
    assert (script.body.decode(), script.content_type) == (SCRIPT, "text/javascript; charset=utf-8")


def test_events_are_the_parts_of_the_page_and_end_with_the_result() -> None:
    shown = Shown(first())
    answer = responder(shown).answer(asked("/events"))
    assert answer.feed is not None
    assert "Nothing is published yet" in answer.feed()["result-part"]
    shown.now = over()
    found = answer.feed()
    assert found["title"].startswith("done")
    assert "standard error" in found["result-part"]
    assert "auditor-part" not in found
    page = responder(shown).answer(asked("/")).body.decode()
    assert all(part in page for name, part in found.items())


def test_the_page_of_a_node_is_for_its_owner_alone() -> None:
    node = Shown(first("node"))
    for path in ("/", "/events"):
        assert responder(node, auditors=None).answer(asked(path)).status == 200, "on the loopback, without a token"
        read = responder(node, token=TOKEN, auditors=None)
        assert read.answer(asked(path)).status == 401
        assert read.answer(asked(path, authorization=f"Bearer {TOKEN}")).status == 200
        both = responder(node, token=TOKEN)
        assert both.answer(asked(path, authorization=f"Bearer {TOKEN}")).status == 401
        assert both.answer(asked(path, **BEARER)).status == 200
        outside = Responder(node, Guard(inside=False), "1.2")
        assert outside.answer(asked(path)).status == 403
        assert outside.answer(asked("/metrics")).status == 200
