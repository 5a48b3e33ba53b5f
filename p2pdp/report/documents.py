"""Claims, refusals and numbers as plain values for JSON: infinity is the string "inf", nothing is NaN."""

from __future__ import annotations

import math
from typing import Any, Final

from p2pdp.core.claims import Claim, Refusal

_NUMBERS: Final = ("epsilon_max", "epsilon_mean", "mu_max", "mu_mean")


def plain(value: Any) -> Any:
    """Numbers for strict JSON; NaN has no place in it and becomes null."""
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return "inf" if value == math.inf else value
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return value


def claim_document(claim: Claim) -> dict[str, Any]:
    return {
        "observer": claim.observer,
        "unit": claim.unit,
        "relation": claim.relation,
        "delta": claim.delta,
        "method": claim.method,
        "conditioning": claim.conditioning,
        "epsilon_max": plain(claim.epsilon_max),
        "epsilon_mean": plain(claim.epsilon_mean),
        "mu_max": plain(claim.mu_max),
        "mu_mean": plain(claim.mu_mean),
        "worst_pair": plain(claim.worst_pair),
        "bound": claim.bound,
        "violated_pairs": claim.violated_pairs,
        "assumptions": list(claim.assumptions),
    }


def claim_of(document: dict[str, Any]) -> Claim:
    """The claim that a document in `audit.json` tells of."""
    numbers = {name: math.inf if document[name] == "inf" else document[name] for name in _NUMBERS}
    pair = document["worst_pair"]
    worst = None if pair is None else (pair[0], tuple(pair[1]) if isinstance(pair[1], list) else pair[1])
    changed = {**numbers, "worst_pair": worst, "assumptions": tuple(document["assumptions"])}
    return Claim(**(document | changed))


def refusal_document(refusal: Refusal) -> dict[str, Any]:
    return {"observer": refusal.observer, "method": refusal.method, "reason": refusal.reason}
