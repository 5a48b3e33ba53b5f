"""Headline and worst bound as sentences, the same in terminal and report; each follows from epsilon and delta."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from p2pdp.audit.headline import NOT_TRUSTED
from p2pdp.core.words import PROTECTIONS, observer_name
from p2pdp.report.page.words import factor, number

_ALL: Final = "other users, the curator and the public"


def in_words(headline: Mapping[str, Any], worst: Mapping[str, Any]) -> list[str]:
    """Two sentences or three, from the documents `headline` and `worst`."""
    return [*_of_headline(headline), _of_worst(headline, worst)]


def _of_headline(headline: Mapping[str, Any]) -> list[str]:
    who, epsilon = observer_name(headline["observer"]), _epsilon(headline)
    if headline["method"] is None:
        return [f"No protection can be claimed: no bound is known for what {who} could learn."]
    if epsilon == math.inf:
        return [f"No protection: nothing limits what {who} could learn about some user (epsilon is infinite)."]
    times = factor(epsilon) or f"e^{number(epsilon)}"
    delta = number(headline["delta"])
    bound = f"{PROTECTIONS[headline['reading']].capitalize()} from {_ALL}: epsilon {number(epsilon)} at delta {delta}"
    seen = f"Whatever these see is at most {times} times as likely under one value of a user's data as under another"
    return [f"{bound}, the bound for {who}.", f"{seen}, except with probability {delta}."]


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
