"""The OpenAPI description of what `responder.py` answers; tests hold the one against the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from p2pdp.web.status import BOOTSTRAP_STATES, NODE_STATES

LIMIT: Final = 100
LIMIT_MAX: Final = 1000
OFFSET_MAX: Final = 1_000_000_000

Schema = dict[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_COUNTS: Final[Schema] = {"type": "object", "additionalProperties": _COUNT}
_SECONDS: Final[Schema] = {"type": "number", "minimum": 0}
_MAYBE_SECONDS: Final[Schema] = {"type": ["number", "null"]}
_FLAG: Final[Schema] = {"type": "boolean"}
_MAYBE_COUNT: Final[Schema] = {"type": ["integer", "null"], "minimum": 0}
_MAYBE_TEXT: Final[Schema] = {"type": ["string", "null"]}
_NUMBERS: Final[Schema] = {"type": ["number", "null", "array", "string"]}  # infinity is the string "inf"


def _object(properties: dict[str, Schema]) -> Schema:
    """Describe an object with all of these properties, and possibly more."""
    return {"type": "object", "properties": properties, "required": sorted(properties)}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_PROBLEM: Final = _object({"type": _TEXT, "title": _TEXT, "status": {"type": "integer"}, "detail": _TEXT})
_PUBLIC_RESULT: Final = _object(
    {
        "edition": {"const": "participants"},
        "run_id": _TEXT,
        "protocol": _TEXT,
        "nodes": _COUNT,
        "started": _MAYBE_TEXT,
        "estimate": _NUMBERS,
        "standard_error": _NUMBERS,
        "missing": _list(_COUNT),
        "claims": _list({"type": "object"}),
        "refusals": _list({"type": "object"}),
    }
)
_RESULT: Final = _object(
    {
        "run_id": _TEXT,
        "protocol": _TEXT,
        "nodes": _COUNT,
        "started": _MAYBE_TEXT,
        "seconds": {"type": "number"},
        "startup_seconds": {"type": "number"},
        "messages": _MAYBE_COUNT,
        "estimate": _NUMBERS,
        "standard_error": _NUMBERS,
        "truth": _NUMBERS,
        "error": _NUMBERS,
        "missing": _list(_COUNT),
        "faults": _COUNTS,
    }
)
_AUDIT: Final = _object(
    {
        "run_id": _TEXT,
        "protocol": _TEXT,
        "nodes": _COUNT,
        "delta": {"type": "number"},
        "verified": {"enum": ["complete", "incomplete"]},
        "claims": _list({"type": "object"}),
        "refusals": _list({"type": "object"}),
    }
)
_PUBLIC_STATUS: Final[dict[str, Schema]] = {
    "run_id": _MAYBE_TEXT,
    "protocol": _MAYBE_TEXT,
    "state": {"enum": list(BOOTSTRAP_STATES)},
    "nodes": _MAYBE_COUNT,
    "enrolled": _COUNT,
    "n": _MAYBE_COUNT,
    "ready": _COUNT,
    "awaited": _list(_COUNT),
    "silent": _list(_object({"user": _COUNT, "since": _TEXT})),
    "excluded": _list(_COUNT),
    "blocked_by": {"type": ["integer", "string", "null"]},
    "started": _MAYBE_TEXT,
    "resumed": _FLAG,
}
_PUBLIC_RUN: Final = _object(_PUBLIC_STATUS)
_RUN: Final = _object(
    {
        **_PUBLIC_STATUS,
        "restarts": _COUNT,
        "seconds": {"type": "object", "additionalProperties": _SECONDS},
        "faults": _COUNTS,
    }
)
_LISTED: Final = _object(
    {
        "run_id": _TEXT,
        "protocol": _TEXT,
        "transport": _TEXT,
        "nodes": _COUNT,
        "n": _MAYBE_COUNT,
        "state": _TEXT,
        "started": _MAYBE_TEXT,
        "seconds": _MAYBE_SECONDS,
        "excluded": _COUNT,
        "epsilon_max": _NUMBERS,
        "headline": {"type": ["object", "null"]},
        "worst": {"type": ["object", "null"]},
    }
)
_RUNS: Final = _object({"runs": _list(_LISTED), "total": _COUNT})


def description(version: str, *, whole: bool, topics: Iterable[str]) -> dict[str, Any]:
    """Describe a bootstrap's server if `whole`, else a node's, which has the probes and metrics."""
    states = list(BOOTSTRAP_STATES if whole else NODE_STATES)
    readiness = _object({"ready": _FLAG, "state": {"enum": states}})
    paths = {
        "/healthz": _get("Whether the process answers.", {"200": _json(_object({"status": {"const": "ok"}}))}),
        "/readyz": _get(
            "Whether others can get here what they come for.", {"200": _json(readiness), "503": _json(readiness)}
        ),
        "/metrics": _get("States and counts.", {"200": _content("text/plain", _TEXT), **_guarded()}),
        "/auditor/metrics": _get(
            "These, with durations, faults and memory.", {"200": _content("text/plain", _TEXT), **_auditors()}
        ),
        "/live.js": _get("The script of live pages.", {"200": _content("text/javascript", _TEXT), **_guarded()}),
        "/openapi.json": _get("This description.", {"200": _json({"type": "object"}), **_guarded()}),
        "/guide": _get("The topics of the documentation.", {"200": _content("text/html", _TEXT), **_guarded()}),
        "/guide/{topic}": _get(
            "A page of the documentation.",
            {"200": _content("text/html", _TEXT), "404": _problem("There is no such topic."), **_guarded()},
            [{"name": "topic", "in": "path", "required": True, "schema": {"type": "string", "enum": list(topics)}}],
        ),
    }
    if whole:
        absent = {"404": _problem("It is not there yet, or never will be.")}
        paths |= {
            "/": _get("The run, live.", {"200": _content("text/html", _TEXT), **_guarded()}),
            "/events": _get("Parts of that page, as they change.", _events(_guarded())),
            "/auditor": _get("The run, live, for the auditor.", {"200": _content("text/html", _TEXT), **_auditors()}),
            "/auditor/events": _get("Parts of that page, as they change.", _events(_auditors())),
            "/report.html": _get(
                "The participants' report.", {"200": _content("text/html", _TEXT), **absent, **_guarded()}
            ),
            "/auditor/report.html": _get(
                "The whole report.", {"200": _content("text/html", _TEXT), **absent, **_auditors()}
            ),
            "/api/v1/run": _get("How far the run is.", {"200": _json(_PUBLIC_RUN), **_guarded()}),
            "/api/v1/auditor/run": _get("That, with durations and faults.", {"200": _json(_RUN), **_auditors()}),
            "/api/v1/result": _get("The participants' result.", {"200": _json(_PUBLIC_RESULT), **absent, **_guarded()}),
            "/api/v1/auditor/result": _get("result.json.", {"200": _json(_RESULT), **absent, **_auditors()}),
            "/api/v1/audit": _get("audit.json.", {"200": _json(_AUDIT), **absent, **_auditors()}),
            "/api/v1/runs": _get(
                "Runs in the index, the newest first.",
                {"200": _json(_RUNS), "503": _problem("There is no index, or it does not answer."), **_auditors()},
                [_number("limit", 1, LIMIT_MAX, LIMIT), _number("offset", 0, OFFSET_MAX, 0)],
            ),
        }
    else:
        owners = {**_guarded(), "403": _problem("Without a token a node's page is served on the loopback only.")}
        paths |= {
            "/": _get("The node, live, for its owner.", {"200": _content("text/html", _TEXT), **owners}),
            "/events": _get("Parts of that page, as they change.", _events(owners)),
        }
    for path in ("/healthz", "/readyz"):
        paths[path]["get"]["security"] = []
    schemes = {"bearer": {"type": "http", "scheme": "bearer"}, "basic": {"type": "http", "scheme": "basic"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "p2pdp", "version": version, "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}},
        "security": [{}, {"bearer": []}, {"basic": []}],
        "paths": paths,
        "components": {"securitySchemes": schemes, "schemas": {"Problem": _PROBLEM}},
    }


def _get(summary: str, responses: dict[str, Any], parameters: list[Schema] | None = None) -> dict[str, Any]:
    refused = {
        "400": _problem("No question of this kind is answered."),
        "421": _problem("The server is called by a name that it does not know."),
    }
    operation: dict[str, Any] = {"summary": summary, "responses": {**responses, **refused}}
    if parameters:
        operation["parameters"] = parameters
    return {"get": operation}


def _events(refused: dict[str, Any]) -> dict[str, Any]:
    """Describe a stream of events; each holds a JSON object of parts by their ids."""
    full = {"503": _problem("All places for streams are taken.")}
    return {"200": _content("text/event-stream", _object({"data": _TEXT})), **full, **refused}


def _guarded() -> dict[str, Any]:
    return {"401": _problem("The read token is missing or wrong.")}


def _auditors() -> dict[str, Any]:
    return {
        "401": _problem("The auditor's token is missing or wrong."),
        "403": _problem("This server has no token for the auditor."),
    }


def _number(name: str, least: int, most: int, default: int) -> Schema:
    schema = {"type": "integer", "minimum": least, "maximum": most, "default": default}
    return {"name": name, "in": "query", "required": False, "schema": schema}


def _content(kind: str, schema: Schema) -> Schema:
    return {"description": "Here it is.", "content": {kind: {"schema": schema}}}


def _json(schema: Schema) -> Schema:
    return _content("application/json", schema)


def _problem(why: str) -> Schema:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": why, "content": {"application/problem+json": {"schema": schema}}}
