"""The words for observers, methods, conditionings and protections: one list for terminal, pages, index and nodes.

Each mapping takes the plain strings of JSON documents too, since the enums are strings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from p2pdp.core.claims import Conditioning, Method, Observer

OBSERVERS: Final[Mapping[str, tuple[str, str]]] = {  # a name, and who that is
    Observer.NODE: ("another user", "one other user, who keeps to the protocol but looks at everything it received"),
    Observer.COALITION: ("colluding users", "several users who put together everything they received and drew"),
    Observer.CURATOR: ("the curator", "who collects the totals; assumed to know also what bootstrap knows"),
    Observer.NETWORK: (
        "an observer of all decrypted messages",
        "who could read all that all users received; messages are encrypted, so this takes the users' disks or keys",
    ),
    Observer.BROKER: ("the message broker", "who relays the encrypted messages and sees who sends to whom, and when"),
    Observer.PUBLIC: ("the public", "anybody who reads what was published and nothing else"),
}

METHODS: Final[Mapping[str, str]] = {
    Method.EXACT: "computed for this run: it was replayed from the ledgers, message by message",
    Method.HIDDEN_PATH: "computed for this run: an upper bound that counts on the observer not knowing the whole route",
    Method.SHUFFLE: "computed for this run: an upper bound that counts on a report being hidden among the others'",
    Method.ITERATION: "an upper bound that counts on later steps blurring what earlier ones told",
    Method.LOCAL: "the ceiling: every contribution seen alone, with only its own user's noise; holds whatever was seen",
    "model": "holds in a model of the run, not for the run itself",
    "published": "a formula as printed in a paper",
}

CONDITIONINGS: Final[Mapping[str, str]] = {
    Conditioning.A_PRIORI: "before the run: over all routes that it could have taken",
    Conditioning.VIEW: "given what the observer itself saw, and not the rest of the route",
    Conditioning.PUBLIC: "given the whole route, schedule and graph: the observer is assumed to know them",
}

PROTECTIONS: Final[Mapping[str, str]] = {  # by the reading of an epsilon, `auditor.headline.reading_of`
    "strong": "strong protection",
    "moderate": "moderate protection",
    "weak": "weak protection",
    "none": "no protection",
}


def observer_name(observer: str) -> str:
    """Return an observer's words; one that has none is called as it is written."""
    return OBSERVERS.get(observer, (observer, ""))[0]


def method_words(method: str) -> str:
    """Say in a few words what a method does; `published:NAME` and the like go by their first part."""
    return METHODS.get(method.partition(":")[0], method)


def conditioning_words(conditioning: str) -> str:
    """Say what the observer is taken to know."""
    return CONDITIONINGS.get(conditioning, conditioning)
