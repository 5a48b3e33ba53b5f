from __future__ import annotations

import pytest

from p2pdp.transports.mqtt_places import Broker, Login, Place


def test_a_place_has_topics_below_its_run() -> None:
    place = Place(Broker("broker", 8883), Login("me"), "abc", "me")
    assert place.topic("other") == "p2pdp/abc/other"
    assert (str(Broker("broker", 8883)), str(Broker("::1", 1))) == ("broker:8883", "[::1]:1")


@pytest.mark.parametrize(("run", "name"), [("a/b", "me"), ("abc", "+"), ("", "me"), ("abc", "#")])
def test_what_could_be_no_part_of_a_topic_is_refused(run: str, name: str) -> None:
    with pytest.raises(ValueError, match="topic"):
        Place(Broker("broker", 1), Login("me"), run, name)


def test_passwords_are_in_no_repr() -> None:
    assert "hidden" not in repr(Place(Broker("broker", 1), Login("me", "me", "hidden"), "abc", "me"))
