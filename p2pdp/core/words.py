"""The words for observers, methods, conditionings and protections: one list for terminal, pages, index and nodes.

Each mapping takes the plain strings of JSON documents too, since the enums are strings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from p2pdp.core.claims import Claim, Conditioning, Method, Observer, Relation, Unit

OBSERVERS: Final[Mapping[str, tuple[str, str]]] = {  # a name, and who that is
    Observer.NODE: ("another user", "one other user, who keeps to the protocol but looks at everything it received"),
    Observer.COALITION: ("colluding users", "several users who put together everything they received and drew"),
    Observer.CURATOR: ("the curator", "who collects the totals; assumed to know also what bootstrap knows"),
    Observer.POOLED: (
        "the curator and colluding users",
        "who put together everything they received and drew, and what bootstrap knows",
    ),
    Observer.NETWORK: (
        "an observer of all decrypted messages",
        "who could read all that all users received; messages are encrypted, so this takes the users' disks or keys",
    ),
    Observer.BROKER: ("the message broker", "who relays the encrypted messages and sees who sends to whom, and when"),
    Observer.PUBLIC: ("the public", "anybody who reads what was published and nothing else"),
}


class UnitWords(NamedTuple):
    """Parts of sentences about a unit."""

    one: str  # of which there are many
    data: str  # what an observer could learn about
    hidden: str  # what a claim hides, as a sentence's beginning


UNITS: Final[Mapping[str, UnitWords]] = {
    Unit.USER: UnitWords("one user", "a user's data", "what is hidden is one user's whole input"),
    Unit.RECORD: UnitWords(
        "one record of one user",
        "one record of a user",
        "what is hidden is one record: one row of one user, whose other rows and number of rows may be known",
    ),
}

RELATIONS: Final[Mapping[str, str]] = {
    Relation.REPLACE: "however it is replaced by another, what observers see changes no more than ε and δ allow",
    Relation.ZERO_OUT: (
        "whether it contributes or nothing does in its place, what observers see differs no more than ε and δ allow"
    ),
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

SIGNS: Final[Mapping[str, str]] = {  # beside these words, for readers who cannot tell colours; "refused": no number
    "strong": "●",
    "moderate": "◐",
    "weak": "○",
    "none": "✕",
    "refused": "–",
}

LIMITS: Final = (  # what no epsilon says, in a few words and in a sentence
    (
        "Parties that break the protocol.",
        (
            "The numbers are about parties who follow it and look at everything that they receive. A user who lies can "
            "falsify the result."
        ),
    ),
    (
        "Traffic analysis.",
        "Messages are encrypted, but who sends to whom, when and how much can be seen on the network.",
    ),
    ("Disks and memory.", "Whoever reads a user's disk or the memory of its node has that user's data."),
    (
        "The result itself.",
        (
            "It may tell much about people in general, and so about people who did not take part. The numbers bound "
            "what is learned of what is protected, which is a user or one record."
        ),
    ),
    ("Other runs.", "The epsilons of all runs on the same data add up. The number of a user's rows is public."),
)


def observer_name(observer: str) -> str:
    """Return an observer's words; one that has none is called as it is written."""
    return OBSERVERS.get(observer, (observer, ""))[0]


def unit_words(unit: str) -> UnitWords:
    """Return the words for a unit; one that has none is called as it is written."""
    return UNITS.get(unit, UnitWords(unit, unit, f"what is hidden is one {unit}"))


def method_name(claim: Claim) -> str:
    """Return the name of a claim's method, with the relation where that is not what claims are about otherwise."""
    return claim.method if claim.relation == Relation.REPLACE else f"{claim.method}, {claim.relation}"


def relation_words(relation: str) -> str:
    return RELATIONS.get(relation, relation)


def method_words(method: str) -> str:
    """Say in a few words what a method does; `published:NAME` and the like go by their first part."""
    return METHODS.get(method.partition(":")[0], method)


def conditioning_words(conditioning: str) -> str:
    """Say what the observer is taken to know."""
    return CONDITIONINGS.get(conditioning, conditioning)
