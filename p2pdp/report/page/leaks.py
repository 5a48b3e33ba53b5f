"""Who about whom: the heat map, each user's worst observer, distance in the graph, and the curves."""

from __future__ import annotations

import math

from p2pdp.core.words import conditioning_words
from p2pdp.report.page.charts import curve_chart, distance_chart
from p2pdp.report.page.facts import Curve, PageFacts
from p2pdp.report.page.heat_map import SIDE_MAX, heat_map
from p2pdp.report.page.layout import figure, more, note, paragraph, table
from p2pdp.report.page.markup import Markup
from p2pdp.report.page.pairs import by_distance, known, rows
from p2pdp.report.page.printed import against_printed
from p2pdp.report.page.words import number

_LISTED_MAX = 200


def map_of_pairs(facts: PageFacts) -> list[Markup]:
    if not known(facts.epsilon):
        return [paragraph("There are no numbers for single pairs of users: see what was refused, and why.")]
    assert facts.epsilon is not None
    drawn, blocks = heat_map(facts.epsilon, "ε for every pair of a user and an observer")
    given = conditioning_words(facts.conditioning)
    caption = f"ε of every pair at δ = {number(facts.delta)}, {given}. Nobody is an observer of its own data."
    parts = [figure(drawn, caption)]
    if blocks:
        parts.insert(0, note(
            "Drawn coarsely.",
            f"{facts.nodes} users do not fit: a square stands for {blocks} pairs and shows the largest ε among them "
            f"(no side of the map has more than {SIDE_MAX} squares). p2pdp audit --pairs writes every pair.",
        ))  # fmt: skip
    return [*parts, _per_user(facts)]


def _per_user(facts: PageFacts) -> Markup:
    assert facts.epsilon is not None
    found = rows(facts.epsilon)
    title = "Look yourself up: who could have learned most about each user"
    if len(found) > _LISTED_MAX:
        found = sorted(found, key=lambda row: -row.worst)[:_LISTED_MAX]
        title = f"Who could have learned most about the {_LISTED_MAX} users who leak most"
    headings = ["user", "strongest observer", "ε to that one", "mean ε over observers"]
    cells = [[row.user, f"user {row.observer}", number(row.worst), number(row.mean)] for row in found]
    if facts.coalition is not None:
        headings.append("ε to the colluders together")
        for row, line in zip(found, cells, strict=True):
            value = float(facts.coalition[row.user])
            line.append("one of them" if math.isnan(value) else number(value))
    return more(title, table(headings, cells, numbers=(0, 2, 3, 4)))


def distance(facts: PageFacts) -> list[Markup]:
    """Where there are numbers for single pairs."""
    if facts.distances is None:
        return [paragraph(facts.no_distances)]
    assert facts.epsilon is not None
    found = by_distance(facts.epsilon, facts.distances)
    cells = [(step.distance, step.pairs, number(step.best), number(step.mean), number(step.worst)) for step in found]
    numbers = table(("distance", "pairs", "best ε", "mean ε", "worst ε"), cells, numbers=(0, 1, 2, 3, 4))
    if len(found) == 1:
        said = f"Every two users are at distance {found[0].distance}, so distance makes no difference here."
        return [paragraph(said), numbers]
    caption = "Distance is the number of edges on the shortest way between two users in the graph."
    return [figure(distance_chart(found), caption), more("The numbers", numbers), *against_printed(facts)]


def curves(facts: PageFacts) -> list[Markup]:
    parts = [
        paragraph(
            "δ is what the promise leaves open. The same leak can be stated with a smaller δ and a larger ε, or the "
            "other way round: a line shows all statements that hold at once, a lone dot the only one computed.",
        )
    ]
    endless = [curve.label for curve in facts.curves if _endless(curve)]
    drawn = [curve for curve in facts.curves if not _endless(curve)]
    if drawn:
        parts.append(
            figure(curve_chart(drawn, facts.delta), "The claims above; the dashed upright line is this run's δ.")
        )
    if endless:
        parts.append(paragraph(f"Infinite at every δ: {'; '.join(endless)}."))
    return parts


def _endless(curve: Curve) -> bool:
    return any(value == math.inf for _, value in curve.points)
