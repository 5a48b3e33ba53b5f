"""The first part of the page: the verdict for each observer, the pairs of users, and how to read epsilon."""

from __future__ import annotations

import math

import numpy as np

from p2pdp.auditor.headline import Bound
from p2pdp.core.claims import Claim, Observer, Unit
from p2pdp.core.words import SIGNS, conditioning_words, unit_words
from p2pdp.protocols import names, protocol
from p2pdp.report.documents import bound_document
from p2pdp.report.page.facts import PageFacts
from p2pdp.report.page.markup import Markup, card, note, paragraph, table, tag
from p2pdp.report.page.pairs import Pair, known, spread, spread_of
from p2pdp.report.page.words import factor, guess, in_words, number, observer, users_named


def summary(facts: PageFacts) -> list[Markup]:
    parts = [*_notes(facts), *_verdict(facts)]
    what_ran = _what_ran(facts) if facts.protocol in names() else ""
    if what_ran:
        parts.append(paragraph(what_ran))
    if known(facts.epsilon) or facts.totals is not None:
        parts += _of_pairs(facts)
    return [*parts, _meaning(facts)]


def _what_ran(facts: PageFacts) -> str:
    analysis = protocol(facts.protocol).analysis()
    of_records = analysis.what_ran_of_records if _unit(facts) == Unit.RECORD else ""
    return of_records or analysis.what_ran


def _verdict(facts: PageFacts) -> list[Markup]:
    """Return headline and worst bound, then what holds for each observer. Nothing reassuring stands above that."""
    headline, worst = facts.verdict
    said = in_words(bound_document(headline), bound_document(worst))
    rows = [_row(bound, facts) for bound in facts.observed]
    headings = ("observer", "protection", "worst ε", "best guess right", "method", "assumed to know")
    return [
        tag("p", " ".join(said[:-1]), class_=f"verdict {headline.reading}"),
        tag("p", said[-1], class_=f"verdict {worst.reading}"),
        table(headings, rows, numbers=(2, 3)),
    ]


def _row(bound: Bound, facts: PageFacts) -> tuple[object, ...]:
    """Return a row; the guess is by the claim that says most about it. All of them hold, and assume the same."""
    word = "refused" if bound.claim is None else bound.reading
    badge = tag("span", f"{SIGNS[word]} {word}", class_=f"badge {word}")
    if bound.claim is None:
        why = tag("a", "why", href="#refusals")
        return observer(bound), badge, "no bound", "no bound", why, ""
    guesses = [
        guess(claim.epsilon_max or 0.0, claim.delta, claim.mu_max, _variation(claim, facts)) for claim in bound.claims
    ]
    right = f"{min(guesses, key=float)} of 100"
    return observer(bound), badge, number(bound.epsilon), right, bound.claim.method, bound.claim.conditioning


def _variation(claim: Claim, facts: PageFacts) -> float | None:
    """Return the largest variation of all pairs, where it is known for the observers of the claim."""
    if facts.variation is None or (claim.observer, claim.conditioning) != (Observer.NODE, facts.conditioning):
        return None
    return float(np.nanmax(facts.variation))


def _notes(facts: PageFacts) -> list[Markup]:
    """Warn of what decides whether the numbers mean anything at all."""
    found = []
    outcome = facts.outcome
    if any(text.startswith("hypothetical") for claim in facts.claims for text in claim.assumptions):
        seed = "a seed" if outcome is None or outcome.seed is None else f"seed {outcome.seed}"
        found.append(
            note(
                "A simulation.",
                f"All its randomness came from {seed}, which anybody can use again: the run itself protected "
                "nobody. The numbers are those of a live run with the same course.",
            )
        )
    if facts.verified != "complete":
        gone = "" if outcome is None or not outcome.missing else f" Out: {users_named(list(outcome.missing))}."
        found.append(
            note(
                "Not everybody's records are here.",
                f"The ledgers at hand are unaltered, but some are missing or end early.{gone} What that leaves open "
                "is refused below, not guessed.",
            )
        )
    return found


def _of_pairs(facts: PageFacts) -> list[Markup]:
    if facts.totals is not None:
        found = spread_of(facts.totals)
    else:
        assert facts.epsilon is not None
        found = spread(facts.epsilon, facts.mu, facts.variation)
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
    parts.append(paragraph(f"How much one user could have learned about {_other(facts)}, over all pairs of users:"))
    cards = [_pair_card("worst pair", found.worst, facts)]
    if found.typical is not None:
        said = "half of all pairs are at or below this; one of them is"
        cards.append(_pair_card("typical pair", found.typical, facts, said))
    cards.append(_pair_card("best pair", found.best, facts))
    parts.append(tag("div", *cards, class_="cards"))
    parts.append(paragraph(f"These hold {conditioning_words(facts.conditioning)}.", soft=True))
    return parts


def _pair_card(title: str, pair: Pair, facts: PageFacts, before: str = "") -> Markup:
    what = "one record" if _unit(facts) == Unit.RECORD else "the data"
    who = f"{before} {what} of user {pair.user}, seen by user {pair.observer}".strip()
    return card(title, f"ε {_short(pair.epsilon)}", who, _guessing(pair, facts.delta))


def _short(epsilon: float) -> str:
    return "= ∞" if epsilon == math.inf else f"= {number(epsilon)}"


def _guessing(pair: Pair, delta: float) -> str:
    if pair.epsilon == math.inf:
        return "nothing limits what it could have learned"
    right = guess(pair.epsilon, delta, pair.mu, pair.variation)
    return f"the best guess between two values is right at most {right} times of 100"


def _unit(facts: PageFacts) -> str:
    return next((claim.unit for claim in facts.claims), Unit.USER)


def _data(facts: PageFacts) -> str:
    """Say what is protected."""
    return unit_words(_unit(facts)).data


def _other(facts: PageFacts) -> str:
    return "one record of another" if _unit(facts) == Unit.RECORD else "another"


def _meaning(facts: PageFacts) -> Markup:
    """Explain epsilon by the headline's own number, and by one sentence that makes it tangible."""
    delta, epsilon = number(facts.delta), facts.verdict.headline.epsilon
    example = f" For ε = {number(epsilon)} the factor e^ε is {factor(epsilon)}." if factor(epsilon) else ""
    return paragraph(
        tag("strong", "How to read ε. "),
        f"Whatever an observer may see is at most e^ε times as probable under one value of {_data(facts)} as under "
        f"any other, plus δ = {delta}.{example} Below 1: strong. From 1 to 5: moderate. Above 5: weak. Infinite: no "
        "protection. The “guess” makes it tangible: an observer who knows that a user holds one of two values, and "
        "finds both equally likely, is right 50 times of 100 without looking at anything.",
    )
