"""Claims, refusals and numbers as plain values for JSON: infinity is the string "inf", nothing is NaN."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from p2pdp.core.claims import Claim, Refusal, Unit

if TYPE_CHECKING:  # accountants are heavy, and simple answers need none of them
    from p2pdp.auditor.headline import Bound, Verdict
    from p2pdp.report.page.facts import Advice, Proof

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
        "unit": plain(claim.unit),
        "relation": plain(claim.relation),
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
    document = {name: plain(getattr(bound, name)) for name in names}
    if bound.claim is not None and bound.claim.unit != Unit.USER:
        document["unit"] = plain(bound.claim.unit)
    return document | ({"left_out": list(bound.left_out)} if bound.left_out else {})


def verdict_document(verdict: Verdict | None) -> dict[str, Any]:
    """Return `headline` and `worst` of a document; both null where nothing was audited or planned."""
    if verdict is None:
        return dict.fromkeys(_VERDICT)
    return {name: bound_document(bound) for name, bound in zip(_VERDICT, verdict, strict=True)}


def proof_document(proof: Proof) -> dict[str, Any]:
    """Return the digests by which a page or a copy of the evidence is recognized; ledgers where they are told."""
    document: dict[str, Any] = {name: getattr(proof, name) for name in ("spec", "roster", "bootstrap", "signature")}
    return document if proof.together is None else {**document, "ledgers": proof.together, "of": dict(proof.ledgers)}


def advice_document(advice: Advice) -> dict[str, Any]:
    prospects = [vars(prospect) for prospect in advice.prospects]
    document: dict[str, Any] = plain({"set": advice.line or None, "prospects": prospects, "reason": advice.reason})
    return document


def refusal_document(refusal: Refusal) -> dict[str, Any]:
    document: dict[str, Any] = {"observer": refusal.observer, "method": refusal.method, "reason": refusal.reason}
    return document if refusal.user is None else {**document, "user": refusal.user}
