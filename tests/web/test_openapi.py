from __future__ import annotations

from typing import Any

import pytest

from p2pdp.web.openapi import description


@pytest.mark.parametrize("whole", [True, False])
def test_each_answer_is_described_and_each_reference_leads_somewhere(whole: bool) -> None:
    found = description("1.2", whole=whole, topics=["trust", "walks"])
    assert (found["openapi"], found["info"]["version"]) == ("3.1.0", "1.2")
    for path, item in found["paths"].items():
        responses = item["get"]["responses"]
        assert list(item) == ["get"]
        assert {"400", "421"} <= responses.keys()
        is_open = item["get"].get("security") == []
        assert ("401" in responses) != is_open
        assert is_open == (path in ("/healthz", "/readyz"))
        auditors = "/auditor" in path or path in ("/api/v1/audit", "/api/v1/runs")
        owners = not whole and path in ("/", "/events")
        assert ("403" in responses) == (auditors or owners)
    assert references(found) == {"#/components/schemas/Problem"}
    assert "Problem" in found["components"]["schemas"]


def references(part: Any) -> set[str]:
    if isinstance(part, dict):
        own = {part["$ref"]} if "$ref" in part else set()
        return own.union(*(references(value) for value in part.values()))
    return set().union(*(references(value) for value in part)) if isinstance(part, list) else set()
