"""The result and its error, what went wrong in the run, and how the run was set up."""

from __future__ import annotations

import math
from typing import Final

from p2pdp.report.page.axes import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Frame, Scale, both_ways, drawing, round_step
from p2pdp.report.page.curves import learning_curves
from p2pdp.report.page.facts import Number, Outcome, PageFacts
from p2pdp.report.page.markup import Markup, figure, join, more, note, paragraph, table, tag, with_small
from p2pdp.report.page.words import FAULTS, number, users_named

_ROWS_MAX = 200
_BARS = "Bars hold about 95 of 100 results of each kind."
_DOT = " The dot is this run."


def result(facts: PageFacts) -> list[Markup]:
    outcome = facts.outcome
    if outcome is None:
        return [paragraph(facts.unread)]
    rows: list[tuple[object, object]] = [
        *_estimate(outcome),
        (with_small("standard error", "how far off such a result is, as a rule"), number(outcome.standard_error)),
    ]
    if outcome.truth is not None:
        rows.append((with_small("without noise it would be", "from the same contributions"), number(outcome.truth)))
        rows.append((with_small("error of this run", "estimate minus the above"), number(outcome.error)))
    parts = [table(("", ""), rows, numbers=(1,)), _verdict(outcome)]
    if isinstance(outcome.estimate, list):
        parts += _list_figure(outcome)
    drawn = error_chart(outcome)
    if drawn:
        parts.append(figure(drawn, _BARS + (_DOT if isinstance(outcome.error, float) else "")))
    if outcome.scores:
        parts.append(_scores(outcome))
    if outcome.curves is not None:
        parts += learning_curves(outcome.curves)
    if not outcome.scores:  # of models there is a table of scores beside those of the alternatives
        parts.append(_rivals(outcome))
    parts.append(paragraph("These numbers are those of result.json; ledgers prove who saw what, not them.", soft=True))
    return parts


def _estimate(outcome: Outcome) -> list[tuple[object, object]]:
    if outcome.estimate is not None or outcome.users_mean is None:
        return [(with_small("estimate", "what everybody learned"), number(outcome.estimate))]
    return [
        (with_small("users' results, on average", "nothing was published"), number(outcome.users_mean)),
        (with_small("the user furthest from that", "how far it is"), number(outcome.users_furthest)),
    ]


def _verdict(outcome: Outcome) -> Markup:
    """Say how unusual the error is, where it is one number."""
    error, spread = outcome.error, outcome.standard_error
    if not (isinstance(error, float) and isinstance(spread, float) and spread > 0.0):
        return Markup()
    times = abs(error) / spread
    kind = (
        "as expected" if times <= 2.0 else "rare, but it happens" if times <= 4.0 else "far more than chance explains"
    )
    return paragraph(f"The error is {number(times)} standard errors: {kind}.")


def _scores(outcome: Outcome) -> Markup:
    """Show the scores of the model; on rows that nobody learned from, if any were kept out, and on public rows."""
    names = {
        "run": with_small("this run", "nobody trusted"),
        "local": with_small("local DP", "everybody sees each noised step"),
        "central": with_small("a trusted curator", "who publishes the last model only"),
        "none": with_small("no privacy", "the same steps without noise"),
    }
    rows = []
    for name, scores in outcome.scores.items():
        smalls = outcome.over_trials.get(name) or [""] * len(scores)
        shown = [number(one) if one is not None else "unknown" for one in scores]
        cells = [with_small(one, small) if small else one for one, small in zip(shown, smalls, strict=True)]
        rows.append((names.get(name, name), *cells))
    columns = (outcome.score, *outcome.scored_on)
    return table(columns, rows, numbers=tuple(range(1, len(columns))))


def _rivals(outcome: Outcome) -> Markup:
    if outcome.local is None and outcome.central is None:
        return paragraph(
            "How large the error would be under local DP or with a trusted curator is not given, because no finite ε "
            "to compare at was claimed when the run ended.",
            soft=True,
        )
    rows = [
        (with_small("this run", "nobody trusted"), number(outcome.standard_error)),
        (with_small("local DP", "nobody trusted, everybody sends one noised report"), number(outcome.local)),
        (with_small("a trusted curator", "who gets all data and adds noise once"), number(outcome.central)),
    ]
    return table(("at the ε and δ of the headline", "standard error"), rows, numbers=(1,))


def _list_figure(outcome: Outcome) -> list[Markup]:
    estimate = outcome.estimate
    assert isinstance(estimate, list)
    parts = []
    drawn = counts_chart(outcome)
    if drawn:
        cut = f" Only the first {SHOWN_MAX} of {len(estimate)} are drawn." if len(estimate) > SHOWN_MAX else ""
        marks = " The dots are the true values." if outcome.truth is not None else ""
        caption = f"Each estimate (line) with the range that holds about 95 of 100 such estimates.{marks}{cut}"
        parts.append(figure(drawn, caption))
    columns = [outcome.estimate, outcome.standard_error, outcome.truth, outcome.error]
    rows = [
        (place, *(number(_at(column, place)) for column in columns)) for place in range(min(len(estimate), _ROWS_MAX))
    ]
    headings = ("place", "estimate", "standard error", "truth", "error")
    cut = f", first {_ROWS_MAX} of {len(estimate)}" if len(estimate) > _ROWS_MAX else ""
    return [*parts, more(f"The numbers one by one{cut}", table(headings, rows, numbers=(0, 1, 2, 3, 4)))]


def _at(column: Number, place: int) -> Number:
    return column[place] if isinstance(column, list) and place < len(column) else None


def faults(facts: PageFacts) -> list[Markup]:
    outcome = facts.outcome
    parts = [paragraph(_VERIFIED.get(facts.verified, facts.verified))]
    if outcome is None:
        return parts
    if outcome.missing:
        out = users_named(list(outcome.missing))
        parts.append(note(
            "Missing:",
            f"{out}. Bootstrap put them out because they did not answer any more; what they had not passed on "
            "by then is not in the result.",
        ))  # fmt: skip
    else:
        parts.append(paragraph("Everybody took part to the end."))
    if outcome.faults:
        rows = [(kind, count, FAULTS.get(kind, "")) for kind, count in outcome.faults.items()]
        parts.append(table(("fault", "times", "what it means"), rows, numbers=(1,)))
        parts.append(
            paragraph("A fault is something that was noticed and dealt with; no data was accepted from it.", soft=True)
        )
    else:
        parts.append(paragraph("No faults were noticed: nothing malformed, repeated or out of place."))
    return parts


_VERIFIED = {
    "complete": "The ledgers of all parties are at hand, unaltered and consistent with each other.",
    "incomplete": "The ledgers at hand are unaltered and consistent; some are missing or end early.",
}


def setting(facts: PageFacts) -> list[Markup]:
    rows: list[tuple[object, object]] = list(facts.setting.items())
    outcome = facts.outcome
    if outcome is not None:
        if outcome.started is not None:
            rows.append(("started", outcome.started))
        simulated = " (simulated)" if outcome.seeded else ""
        rows += [
            ("took", f"{number(outcome.seconds)} s{simulated}"),
            ("messages", _counted(outcome.messages)),
            ("bytes on the wires", _counted(outcome.bytes)),
        ]
    parts = [table(("", ""), rows)]
    if outcome is not None and outcome.traffic:
        parts += _traffic(outcome)
    return [*parts, more("The whole spec", tag("pre", facts.spec_text))]


def _traffic(outcome: Outcome) -> list[Markup]:
    """Show what one user sent for the others' reports."""
    told = outcome.traffic
    rows = [
        (with_small(name, why), *(number(told.get(f"{key}_per_user_{which}")) for which in ("mean", "max")))
        for key, name, why in (
            ("reports", "reports", "its own and others', to users and at the end to the curator"),
            ("messages", "messages", "with the marks that end rounds, and cover"),
            ("bytes", "bytes", "in padded frames"),
        )
    ]
    expected, held = number(told.get("reports_per_user_expected")), number(told.get("reports_held_max"))
    return [
        table(("sent by one user", "on average", "at most"), rows, numbers=(1, 2)),
        paragraph(
            f"A report moves about once a round, so {expected} were to be expected of a user. The paper's Table 3 has "
            "the same count: it grows with the rounds, which are as many as log n times what the graph takes to mix. "
            f"The most that anybody passed on in one round were {held}; the paper says that this does not grow with n, "
            "which holds where no user has many more neighbours than others.",
            soft=True,
        ),
    ]


def _counted(count: int | None) -> str:
    return "unknown" if count is None else f"{count:,}"


_TWO_SIDED: Final = 1.96  # of a normal distribution, 95 in 100 lie within so many standard deviations
SHOWN_MAX: Final = 24
_DRAWN_MAX: Final = 1e300  # the width of a drawing must be a number, too
_NAMES: Final = 170
_ROW: Final = 44


def error_chart(outcome: Outcome) -> Markup:
    """Draw where 95 of 100 results would fall around the truth, for this run and its two rivals, of one number."""
    schemes = {
        "this run": outcome.standard_error,
        "a trusted curator": outcome.central,
        "local DP": outcome.local,
    }
    errors = {name: _TWO_SIDED * error for name, error in schemes.items() if isinstance(error, float)}
    reach = max([*errors.values(), abs(outcome.error) if isinstance(outcome.error, float) else 0.0])
    if not 0.0 < reach < _DRAWN_MAX:
        return Markup()
    step = round_step(reach, 3)
    edge = step * math.ceil(reach / step)
    base = 40 + _ROW * len(errors)

    def x(value: float) -> float:
        return round(_NAMES + (value / edge + 1) / 2 * (WIDTH - _NAMES - 30), 1)

    parts = []
    for tick in range(-round(edge / step), round(edge / step) + 1):
        at = x(tick * step)
        parts.append(tag("line", class_="grid", x1=at, x2=at, y1=30, y2=base))
        parts.append(tag("text", number(tick * step), class_="tick", x=at, y=base + 17, text_anchor="middle"))
    parts.append(tag("line", class_="here", x1=x(0), x2=x(0), y1=24, y2=base))
    parts.append(tag("text", "the true value", class_="tick", x=x(0), y=16, text_anchor="middle"))
    for row, (name, error) in enumerate(errors.items()):
        y = 40 + _ROW * row
        parts.append(tag("text", name, class_="label", x=_NAMES - 14, y=y + 19, text_anchor="end"))
        parts.append(tag("rect", class_=f"bar s{row}", x=x(-error), y=y + 5, width=x(error) - x(-error), height=18))
    if isinstance(outcome.error, float):
        said = tag("title", f"this run's estimate is off by {number(outcome.error)}")
        parts.append(tag("circle", said, class_="point", cx=x(outcome.error), cy=54, r=6))
    parts.append(tag("text", "off by", class_="title", x=x(0), y=base + 38, text_anchor="middle"))
    described = "The table beside it gives the same numbers as standard errors."
    return drawing("How far off results fall around the truth", described, *parts, height=base + 50)


def counts_chart(outcome: Outcome) -> Markup:
    """Draw each estimate of a vector with the range that holds 95 in 100, and the true value as a mark."""
    estimates, errors, truth = (
        part[:SHOWN_MAX] if isinstance(part, list) else []
        for part in (outcome.estimate, outcome.standard_error, outcome.truth)
    )
    if (
        not estimates
        or len(errors) != len(estimates)
        or not all(abs(value) < _DRAWN_MAX for value in [*estimates, *errors, *truth])
    ):
        return Markup()
    reach = [_TWO_SIDED * error for error in errors]
    ends = [
        *(value - part for value, part in zip(estimates, reach, strict=True)),
        *(value + part for value, part in zip(estimates, reach, strict=True)),
        *truth,
        0.0,
    ]
    frame = Frame(Scale((-0.5, len(estimates) - 0.5), logarithmic=False), both_ways(ends))
    half = min(16.0, 0.3 * (WIDTH - LEFT - RIGHT) / len(estimates))
    parts = []
    for place, (value, part) in enumerate(zip(estimates, reach, strict=True)):
        x, y = frame.x(place), frame.y(value)
        said = tag("title", f"{place}: {number(value)} ± {number(part)}")
        low, high = frame.y(value - part), frame.y(value + part)
        parts.append(
            tag("rect", said, class_="bar s0", x=x - half, width=2 * half, y=high, height=max(1.0, low - high))
        )
        parts.append(tag("line", class_="mean", x1=x - half, x2=x + half, y1=y, y2=y))
        if place < len(truth):
            parts.append(tag("circle", class_="point", cx=x, cy=frame.y(truth[place]), r=4.5))
    stride = math.ceil(len(estimates) / 12)
    ticks = [(float(place), str(place)) for place in range(0, len(estimates), stride)]
    axes = frame.axes("place in the list (category, column)", "value", ticks)
    zero = frame.y(0.0)
    line = (
        tag("line", class_="axis", x1=LEFT, x2=WIDTH - RIGHT, y1=zero, y2=zero) if TOP < zero < HEIGHT - BOTTOM else ""
    )
    return drawing("Estimates and true values", "The table below gives the same numbers.", axes, line, join(parts))
