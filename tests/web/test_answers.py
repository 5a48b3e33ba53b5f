from __future__ import annotations

import json
from http import HTTPStatus

from p2pdp.web.answers import Answer, document, problem


def test_a_problem_is_a_document_with_its_headers() -> None:
    answer = problem(HTTPStatus.METHOD_NOT_ALLOWED, "only reading", ("Allow", "GET"))
    assert json.loads(answer.body) == {
        "type": "about:blank", "title": "Method Not Allowed", "status": 405, "detail": "only reading",
    }  # fmt: skip
    assert ("Allow", "GET") in answer.headers
    assert ("Content-Type", "application/problem+json") in answer.headers


def test_each_answer_forbids_caching_sniffing_framing_and_loading() -> None:
    headers = dict(document({}).headers)
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    page = dict(Answer(200, b"", "text/html", "default-src 'self'").headers)
    assert page["Content-Security-Policy"] == "default-src 'self'"
