"""What a paper prints about each pair's leak, drawn over what was computed for this run, and the verdict in words."""

from __future__ import annotations

from typing import Final

import numpy as np

from p2pdp.report.page.charts import printed_chart
from p2pdp.report.page.facts import PageFacts
from p2pdp.report.page.layout import figure, more, paragraph, table
from p2pdp.report.page.markup import Markup
from p2pdp.report.page.pairs import by_distance, known
from p2pdp.report.page.words import number

_ROUNDING: Final = 1e-9
_UNIT: Final = (
    "1 is what a user's noised value tells by itself, and nobody can learn more. The printed formula adds up messages "
    "that share their noise: it may exceed 1, and it may also be far below what was told."
)


def against_printed(facts: PageFacts) -> list[Markup]:
    """Nothing where there are no such numbers; the caller has looked that distances are known."""
    if not known(facts.leak) or not known(facts.printed):
        return []
    assert facts.leak is not None
    assert facts.printed is not None
    assert facts.distances is not None
    told, printed = by_distance(facts.leak, facts.distances), by_distance(facts.printed, facts.distances)
    rows = [
        (one.distance, one.pairs, number(one.mean), number(one.worst), number(two.mean), number(two.worst))
        for one, two in zip(told, printed, strict=True)
    ]
    headings = ("distance", "pairs", "told, mean", "told, worst", "printed, mean", "printed, worst")
    return [
        figure(printed_chart(told, printed), _UNIT),
        more("The numbers, told and printed", table(headings, rows, numbers=(0, 1, 2, 3, 4, 5))),
        paragraph(_verdict(facts)),
    ]


def _verdict(facts: PageFacts) -> str:
    assert facts.leak is not None
    assert facts.printed is not None
    pairs = ~np.isnan(facts.leak) & ~np.isnan(facts.printed)
    below = pairs & (facts.leak > facts.printed * (1.0 + _ROUNDING) + _ROUNDING)
    if not below.any():
        return "In this run the printed formula is nowhere below what was told."
    gap = np.where(below, facts.leak - facts.printed, -1.0)
    user, observer = np.unravel_index(int(np.argmax(gap)), gap.shape)
    return (
        f"The printed formula understates what was told for {int(below.sum())} of {int(pairs.sum())} ordered pairs. "
        f"Most of all for user {user}, seen by user {observer}: it prints "
        f"{number(float(facts.printed[user, observer]))}, and {number(float(facts.leak[user, observer]))} was told."
    )
