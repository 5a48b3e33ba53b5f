from __future__ import annotations

import inspect

import pytest

from p2pdp.node.shell import HostShell
from p2pdp.transports.contract import Shell, Transport
from tests.support.transport_worlds import WORLDS, Node


def parameters(kind: type, method: str) -> list[str]:
    return list(inspect.signature(getattr(kind, method)).parameters)


@pytest.mark.parametrize("method", ["send", "answer", "belongs", "close"])
@pytest.mark.parametrize("kind", WORLDS)
def test_transports_are_called_as_the_contract_says(kind: type, method: str) -> None:
    assert parameters(kind, method) == parameters(Transport, method)
    wanted = inspect.iscoroutinefunction(getattr(Transport, method))
    assert inspect.iscoroutinefunction(getattr(kind, method)) == wanted


@pytest.mark.parametrize("method", ["arrived", "lost", "connected"])
@pytest.mark.parametrize("kind", [HostShell, Node])
def test_shells_are_called_as_the_contract_says(kind: type, method: str) -> None:
    assert parameters(kind, method) == parameters(Shell, method)
