"""What its doors let through; `test_broker.py` runs it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from amqtt.contexts import Action

from p2pdp.transports.mqtt.amqtt_broker import Doorkeeper, Topics


def made(kind: Any, config: Any) -> Any:
    return kind(SimpleNamespace(config=config, logger=None))


async def test_a_password_is_for_its_user() -> None:
    doors = made(Doorkeeper, Doorkeeper.Config({"a": "secret"}))
    for user, password, enters in (
        ("a", "secret", True),
        ("a", "x", False),
        ("b", "secret", False),
        (None, None, False),
    ):
        assert await doors.authenticate(session=SimpleNamespace(username=user, password=password)) is enters
    assert "secret" not in repr(doors.config)


@pytest.mark.parametrize(
    ("topic", "action", "allowed"),
    [
        ("p2pdp/run/me", Action.SUBSCRIBE, True),
        ("p2pdp/run/other", Action.SUBSCRIBE, False),
        ("p2pdp/+/me", Action.SUBSCRIBE, False),
        ("#", Action.SUBSCRIBE, False),
        ("p2pdp/run/other", Action.PUBLISH, True),
        ("p2pdp/run", Action.PUBLISH, False),
        ("other/run/me", Action.SUBSCRIBE, False),
        (None, Action.SUBSCRIBE, False),
    ],
)
async def test_each_reads_its_own_topic_and_writes_to_others(topic: str, action: Action, allowed: bool) -> None:
    session = SimpleNamespace(username="me")
    plugin = made(Topics, Topics.Config())
    assert await plugin.topic_filtering(session=session, topic=topic, action=action) is allowed
