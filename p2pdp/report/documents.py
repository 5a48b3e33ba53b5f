"""Claims, refusals and numbers as plain values for JSON: infinity is the string "inf", nothing is NaN."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from p2pdp.core.claims import Claim, Refusal

if TYPE_CHECKING:  # accountants are heavy, and simple answers need none of them
    from p2pdp.auditor.headline import Bound, Verdict

_VERDICT: Final = ("headline", "worst")


def plain(value: Any) -> Any:
    """Return a value for strict JSON; NaN has no place in it and becomes null."""
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return "inf" if value == math.inf else value
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return str(value) if isinstance(value, StrEnum) else value


def claim_document(claim: Claim) -> dict[str, Any]:
    return {
        "observer": plain(claim.observer),
        "unit": claim.unit,
        "relation": claim.relation,
        "delta": claim.delta,
        "method": plain(claim.method),
        "conditioning": plain(claim.conditioning),
        "epsilon_max": plain(claim.epsilon_max),
        "epsilon_mean": plain(claim.epsilon_mean),
        "mu_max": plain(claim.mu_max),
        "mu_mean": plain(claim.mu_mean),
        "worst_pair": plain(claim.worst_pair),
        "bound": claim.bound,
        "violated_pairs": claim.violated_pairs,
        "assumptions": list(claim.assumptions),
    }


def bound_document(bound: Bound) -> dict[str, Any]:
    """Return headline or worst bound; without any claim about the observer, method and conditioning are null."""
    names = ("observer", "method", "conditioning", "epsilon", "delta", "reading")
    return {name: plain(getattr(bound, name)) for name in names}


def verdict_document(verdict: Verdict | None) -> dict[str, Any]:
    """Return `headline` and `worst` of a document; both null where nothing was audited or planned."""
    if verdict is None:
        return dict.fromkeys(_VERDICT)
    return {name: bound_document(bound) for name, bound in zip(_VERDICT, verdict, strict=True)}


def refusal_document(refusal: Refusal) -> dict[str, Any]:
    return {"observer": refusal.observer, "method": refusal.method, "reason": refusal.reason}
