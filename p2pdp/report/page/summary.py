"""What the page says first: who could have learned what about whom, and how to read that."""

from __future__ import annotations

import math

from p2pdp.core.claims import Claim
from p2pdp.report.page.facts import PageFacts
from p2pdp.report.page.layout import card, note, paragraph
from p2pdp.report.page.markup import Markup, tag
from p2pdp.report.page.pairs import Pair, known, spread
from p2pdp.report.page.words import CONDITIONINGS, WHAT_RAN, factor, guess, number, observer, users, worst


def summary(facts: PageFacts) -> list[Markup]:
    parts = [paragraph(WHAT_RAN[facts.protocol])] if facts.protocol in WHAT_RAN else []
    parts += _notes(facts)
    if known(facts.epsilon):
        parts += _of_pairs(facts)
    elif facts.bounds:
        parts += _of_claim(facts.bounds[0])
    else:
        parts.append(note("No bound.", "Nothing can be proven of what anybody could have learned."))
    parts += [_of_coalition(claim) for claim in facts.bounds if claim.observer == "coalition"]
    return [*parts, _meaning(facts)]


def _notes(facts: PageFacts) -> list[Markup]:
    """What decides whether the numbers mean anything at all."""
    found = []
    outcome = facts.outcome
    if any(text.startswith("hypothetical") for claim in facts.claims for text in claim.assumptions):
        seed = "" if outcome is None or outcome.seed is None else f" {outcome.seed}"
        found.append(
            note(
                "A simulation.",
                f"All its randomness came from seed{seed}, which anybody can use again: it protected nobody. The "
                "numbers say what a live run with the same course would have been worth.",
            )
        )
    if facts.verified != "complete":
        gone = "" if outcome is None or not outcome.missing else f" Out: user {users(list(outcome.missing))}."
        found.append(
            note(
                "Not everybody's records are here.",
                f"The ledgers at hand are unaltered, but some are missing or end early.{gone} What that leaves open "
                "is refused below, not guessed.",
            )
        )
    return found


def _of_pairs(facts: PageFacts) -> list[Markup]:
    assert facts.epsilon is not None
    found = spread(facts.epsilon, facts.mu)
    parts = []
    if found.infinite:
        share = f"{found.infinite} of {found.count} pairs"
        parts.append(
            note(
                "Not protected:",
                f"for {share} of a user and an observer ε is infinite. These observers received something about "
                "that user's data, its value or a sum with some others', that no noise covered.",
            )
        )
    parts.append(paragraph("How much one user could have learned about another, over all pairs of users:"))
    cards = [
        _pair_card("worst pair", found.worst, facts),
        _pair_card("typical pair", found.typical, facts, "half of all pairs are at or below this; one of them is"),
        _pair_card("best pair", found.best, facts),
    ]
    parts.append(tag("div", *cards, class_="cards"))
    parts.append(paragraph(f"These hold {CONDITIONINGS.get(facts.conditioning, facts.conditioning)}.", soft=True))
    return parts


def _pair_card(title: str, pair: Pair, facts: PageFacts, before: str = "") -> Markup:
    who = f"{before} the data of user {pair.user}, seen by user {pair.observer}".strip()
    return card(title, f"ε {_short(pair.epsilon)}", who, _guessing(pair.epsilon, facts.delta, pair.mu))


def _of_claim(claim: Claim) -> list[Markup]:
    said = [
        paragraph(
            "No numbers for single pairs can be given for this run. What can be said holds against ",
            tag("strong", observer(claim)),
            ", whatever that observer saw:" if claim.method == "local" else ":",
        )
    ]
    cards = []
    for title, epsilon, mu in (
        ("worst case", claim.epsilon_max, claim.mu_max),
        ("on average over users", claim.epsilon_mean, None),
    ):
        if epsilon is not None:
            who = worst(claim) if title == "worst case" else ""
            about = [who] if who else []
            cards.append(card(title, f"ε {_short(epsilon)}", *about, _guessing(epsilon, claim.delta, mu)))
    return [*said, tag("div", *cards, class_="cards")]


def _of_coalition(claim: Claim) -> Markup:
    assert claim.epsilon_max is not None
    who = f"{observer(claim).capitalize()} "
    said = (
        f"could, putting together what they saw, have learned most about {worst(claim)}: ε {_short(claim.epsilon_max)}"
    )
    if claim.epsilon_max == math.inf:
        return note("Not protected from colluders.", f"{who}{said}. Nothing limits what they could have learned.")
    return paragraph(f"{who}{said}; {_guessing(claim.epsilon_max, claim.delta, claim.mu_max)}.")


def _short(epsilon: float) -> str:
    return "= ∞" if epsilon == math.inf else f"= {number(epsilon)}"


def _guessing(epsilon: float, delta: float, mu: float | None) -> str:
    if epsilon == math.inf:
        return "nothing limits what it could have learned"
    return f"the best guess between two values is right at most {guess(epsilon, delta, mu)} times of 100"


def _meaning(facts: PageFacts) -> Markup:
    """One sentence on epsilon, with the headline's own number, and one that makes it tangible."""
    delta = number(facts.delta)
    known_ones = [claim.epsilon_max for claim in facts.bounds if claim.epsilon_max is not None]
    first = next((epsilon for epsilon in known_ones if epsilon < math.inf), math.inf)
    example = f" For ε = {number(first)} the factor e^ε is {factor(first)}." if factor(first) else ""
    return paragraph(
        tag("strong", "How to read ε. "),
        "Whatever an observer may see is at most e^ε times as probable under one value of a user's data as under any "
        f"other, plus δ = {delta}.{example} At ε = 0 next to nothing can be learned, "
        "below 1 little, and from 5 on the promise is weak; infinite is no promise. The “guess” makes it tangible: an "
        "observer who knows that a user holds one of two values, and finds both equally likely, is right 50 times of "
        "100 without looking at anything.",
    )
