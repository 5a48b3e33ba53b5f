from __future__ import annotations

from dataclasses import replace

from p2pdp.audit.brokers import claims_with_broker, refusals_with_broker
from p2pdp.core.claims import Claim, Refusal
from p2pdp.core.spec import Spec
from p2pdp.files.spec import parse_spec

TEXT = """[run]
protocol = "walk.sum"
nodes = 4
transport = "{}"
[graph]
kind = "ring"
[walk]
order = "ring"
laps = 1
[noise]
mechanism = "none"
[data]
kind = "uniform"
clip = [0.0, 1.0]
"""


def spec(transport: str) -> Spec:
    return parse_spec(TEXT.format(transport), None)


def claim(observer: str) -> Claim:
    return Claim(
        observer, "user", "replace", 1e-6, "exact", "public", 2.0, 1.0, None, None, (0, observer), True, None, ("a",)
    )


def test_a_broker_has_what_whoever_watches_the_network_has() -> None:
    claims = [claim("node"), claim("network"), claim("public")]
    found = claims_with_broker(spec("mqtt"), claims)
    assert [one.observer for one in found] == ["node", "network", "broker", "public"]
    assert found[2] == replace(claims[1], observer="broker", worst_pair=(0, "broker"))
    nowhere = replace(claims[1], worst_pair=None)
    assert claims_with_broker(spec("mqtt"), [nowhere])[1].worst_pair is None


def test_it_is_refused_what_the_network_is_refused_once() -> None:
    refusals = [
        Refusal("network", "exact", "so"),
        Refusal("network", "shuffle", "too"),
        Refusal("broker", "exact", "x"),
    ]
    found = refusals_with_broker(spec("mqtt"), refusals)
    assert [(one.observer, one.method, one.reason) for one in found] == [
        ("network", "exact", "so"),
        ("network", "shuffle", "too"),
        ("broker", "shuffle", "too"),
        ("broker", "exact", "x"),
    ]


def test_without_a_broker_nothing_is_said_of_one() -> None:
    for transport in ("tcp", "memory"):
        assert claims_with_broker(spec(transport), [claim("network")]) == [claim("network")]
        refusal = Refusal("network", "exact", "so")
        assert refusals_with_broker(spec(transport), [refusal]) == [refusal]
