"""Numbers, headline and claims as words, the same in terminal and report."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from p2pdp.core.claims import NOT_TRUSTED, Claim, Observer, Unit
from p2pdp.core.words import PROTECTIONS, observer_name, unit_words

if TYPE_CHECKING:  # accountants are heavy, and simple answers need none of them
    from p2pdp.auditor.headline import Bound

_LISTED_MAX: Final = 6
_READABLE: Final = 12.0

FAULTS: Final[Mapping[str, str]] = {
    "bad_enrolment": "something came to where users enrol that is no request to enrol",
    "bad_roster_entry": "an entry of the list of users was not signed as it should be",
    "bad_value": "a value of impossible size or form",
    "conflict": "the same message number with different content",
    "excluded_peer": "something came from a user who was out already",
    "gap": "a message came before one that should precede it; it was asked for again",
    "malformed": "bytes that are no message",
    "peer_rolled_back": "somebody's disk had been set back to an earlier state",
    "refused_enrolment": "a request to enrol was refused: with a join token that is not valid, say",
    "rolled_back": "a user's own disk had been set back to an earlier state; it stopped",
    "unproven_rollback": "somebody said without proof that a user had forgotten something; nothing came of it",
    "unexpected_message": "a message that the protocol does not foresee at that point",
    "unknown_peer": "something came from nobody on the list of users",
}


def number(value: object) -> str:
    """Format a number with up to four significant digits, and cut long vectors."""
    if value is None:
        return "unknown"
    if isinstance(value, list):
        shown = ", ".join(number(part) for part in value[:_LISTED_MAX])
        return f"{shown}, … ({len(value)} numbers)" if len(value) > _LISTED_MAX else shown
    if isinstance(value, float):
        return "infinite" if value == math.inf else re.sub(r"e\+?(-?)0*", r"e\1", f"{value:.4g}")
    return str(value)


def guess(epsilon: float, delta: float, mu: float | None = None, variation: float | None = None) -> str:
    """Return how often in 100 the best guess between two equally likely values is right, rounded up.

    (1 + total variation) / 2: Phi(mu / 2) for Gaussian leaks, else at most (e^epsilon + delta) / (e^epsilon + 1).
    """
    if math.inf in (epsilon, mu):
        return "100"
    if mu is not None:
        chance = math.erfc(-mu / math.sqrt(8.0)) / 2.0
    else:
        chance = (1.0 + delta * math.exp(-epsilon)) / (1.0 + math.exp(-epsilon))
        if variation is not None:
            chance = min(chance, (1.0 + variation) / 2.0)
    return f"{math.ceil(1000.0 * chance - 1e-9) / 10.0:.1f}".removesuffix(".0")


def factor(epsilon: float) -> str:
    """Format e^epsilon to three digits; "" where it is too large to mean anything."""
    if epsilon >= _READABLE:
        return ""
    value = math.exp(epsilon)
    return f"{float(f'{value:.3g}'):,.0f}" if value >= 1000.0 else f"{value:.3g}"


def observer(about: Claim | Bound) -> str:
    """Name the observer of a claim or bound; a coalition by its members."""
    name = observer_name(about.observer)
    claim = about if isinstance(about, Claim) else about.claim
    if about.observer == Observer.COALITION and claim is not None and claim.worst_pair is not None:
        members = claim.worst_pair[1]
        return f"{name}: {users(members)}" if isinstance(members, tuple) else name
    return name


def users_named(numbers: tuple[int, ...] | list[int]) -> str:
    return f"user {numbers[0]}" if len(numbers) == 1 else f"users {users(numbers)}"


def users(numbers: tuple[int, ...] | list[int]) -> str:
    shown = ", ".join(map(str, numbers[:_LISTED_MAX]))
    return f"{shown}, … ({len(numbers)} in all)" if len(numbers) > _LISTED_MAX else shown


def worst(claim: Claim) -> str:
    """Name the user whose data is at stake, and the observer where it is one of many."""
    if claim.worst_pair is None:
        return ""
    user, other = claim.worst_pair
    return f"user {user}, seen by user {other}" if isinstance(other, int) else f"user {user}"


_ALL: Final = "other users, the curator and the public"


def in_words(headline: Mapping[str, Any], worst: Mapping[str, Any]) -> list[str]:
    """Return two sentences or three, from the documents `headline` and `worst`."""
    return [*_of_headline(headline), _of_worst(headline, worst)]


def _of_headline(headline: Mapping[str, Any]) -> list[str]:
    who, epsilon = observer_name(headline["observer"]), _epsilon(headline)
    if headline["method"] is None:
        return [f"No protection can be claimed: no bound is known for what {who} could learn."]
    if epsilon == math.inf:
        return [f"No protection: nothing limits what {who} could learn about some user (epsilon is infinite)."]
    times = factor(epsilon) or f"e^{number(epsilon)}"
    delta, what = number(headline["delta"]), unit_words(headline.get("unit", Unit.USER)).data
    bound = f"{PROTECTIONS[headline['reading']].capitalize()} from {_ALL}: epsilon {number(epsilon)} at delta {delta}"
    seen = f"Whatever these see is at most {times} times as likely under one value of {what} as under another"
    beside = headline.get("left_out", ())
    less = f", but for {users_named(beside)}, of whom it is not known what they saw" if beside else ""
    return [f"{bound}, the bound for {who}{less}.", f"{seen}, except with probability {delta}."]


def _of_worst(headline: Mapping[str, Any], worst: Mapping[str, Any]) -> str:
    who, epsilon = observer_name(worst["observer"]), _epsilon(worst)
    if worst["method"] is None:
        return f"Worst observer: {who}. No protection can be claimed: no bound is known."
    if epsilon == _epsilon(headline):
        more = "" if worst["observer"] in NOT_TRUSTED else f", not even for {who}"
        return f"For no other observer is the bound larger{more}."
    said = "infinite" if epsilon == math.inf else f"{number(epsilon)} at delta {number(worst['delta'])}"
    return f"Worst observer: {who}. {PROTECTIONS[worst['reading']].capitalize()}: epsilon {said}."


def _epsilon(bound: Mapping[str, Any]) -> float:
    return math.inf if bound["epsilon"] == "inf" else float(bound["epsilon"])
