from __future__ import annotations

import dataclasses
import inspect

import pytest

from p2pdp.core.errors import UsageError
from p2pdp.protocols import names, protocol
from p2pdp.protocols.contract import Estimate, Protocol, Start


def test_protocols_are_found_by_name_in_order() -> None:
    assert names() == sorted(names())
    assert {"walk.sum", "walk.histogram"} <= set(names())


@pytest.mark.parametrize("name", names())
def test_each_module_defines_the_protocol_that_it_is_named_after(name: str) -> None:
    found = protocol(name)
    assert found.name == name
    for method in ("plan", "machine", "inputs", "inputs_again", "check", "publish", "estimate"):
        wanted = list(inspect.signature(getattr(Protocol, method)).parameters)
        assert ["self", *inspect.signature(getattr(found, method)).parameters] == wanted


@pytest.mark.parametrize(
    "name", ["walk.sums", "walking", "walk_sum", "", "run.plan", "contract", "walk.", "../walk.sum"]
)
def test_an_unknown_name_is_refused_with_those_that_are_known(name: str) -> None:
    with pytest.raises(UsageError, match=r"\[run\] protocol: .* it can run .*walk\.sum"):
        protocol(name)


def test_starts_and_estimates_are_frozen_values() -> None:
    assert Start(0, 1, 1) == Start(0, 1, 1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Start(0, 1, 1).user = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        Estimate(1.0, 0.5).value = 2.0  # type: ignore[misc]
