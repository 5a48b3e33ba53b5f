from __future__ import annotations

import math

import pytest

from p2pdp.report.page.results import SHOWN_MAX, counts_chart, error_chart, faults, result, setting
from tests.support.made import facts, outcome, read


def test_the_result_stands_beside_truth_and_rivals() -> None:
    words = read(result(facts())).said
    for part in ("17.5", "16", "1.5", "local DP", "8", "trusted curator", "result.json"):
        assert part in words
    assert "0.75 standard errors: as expected" in words


@pytest.mark.parametrize(("error", "verdict"), [(-3.0, "as expected"), (7.0, "rare"), (50.0, "more than chance")])
def test_how_unusual_an_error_is(error: float, verdict: str) -> None:
    assert verdict in read(result(facts(outcome=outcome(error=error)))).said


def test_what_is_not_known_is_not_invented() -> None:
    words = read(result(facts(outcome=outcome(truth=None, error=None, local=None, central=None)))).said
    assert "without noise" not in words
    assert "The error is" not in words
    assert "no finite ε" in words
    assert read(result(facts(outcome=None, unread="it is lost"))).said == "it is lost"
    exact = read(result(facts(outcome=outcome(standard_error=0.0, error=0.0)))).said
    assert "The error is" not in exact


def test_lists_are_drawn_and_written_out() -> None:
    vector = outcome(
        estimate=[5.0, 6.0],
        standard_error=[1.0, 1.0],
        truth=[4.0, 7.0],
        error=[1.0, -1.0],
        local=[2.0, 2.0],
        central=None,
    )
    page = read(result(facts(outcome=vector)))
    assert "0 5 1 4 1" in page.said
    assert "svg" in page.names()
    long = outcome(estimate=[1.0] * 300, standard_error=[1.0] * 300, truth=None, error=None)
    words = read(result(facts(outcome=long))).said
    assert "first 24 of 300" in words
    assert "first 200 of 300" in words
    assert "199 1 1 unknown unknown" in words


def test_what_each_user_sent_stands_beside_what_was_expected() -> None:
    traffic = {f"{name}_per_user_{which}": 2.0 for name in ("messages", "bytes") for which in ("mean", "max")}
    traffic |= {"reports_per_user_mean": 17.5, "reports_per_user_max": 31.0}
    traffic |= {"reports_per_user_expected": 18.1, "reports_held_max": 5.0}
    words = read(setting(facts(outcome=outcome(traffic=traffic)))).said
    assert "17.5 31" in words
    assert "18.1 were to be expected" in words
    assert "Table 3" in words
    assert "sent by one user" not in read(setting(facts())).said


def test_faults_and_missing_users_are_explained() -> None:
    words = read(faults(facts(outcome=outcome(faults={"gap": 3, "something_new": 1}, missing=[4, 7])))).said
    assert "gap 3 a message came before" in words
    assert "something_new 1" in words
    assert "Missing: users 4, 7." in words
    quiet = read(faults(facts())).said
    assert "Everybody took part" in quiet
    assert "No faults" in quiet
    assert "unaltered" in read(faults(facts(outcome=None))).said
    assert "some are missing" in read(faults(facts(verified="incomplete"))).said


def test_the_setting_shows_the_spec_as_text() -> None:
    page = read(setting(facts(spec_text='path = "<script>x</script>"', setting={"graph": "<i>ring</i>"})))
    assert "<script>x</script>" in page.said
    assert page.names().isdisjoint({"script", "i"})
    assert "2030-01-31" in page.said
    assert "messages 9" in page.said
    assert "wires 1,234" in page.said
    assert "wires unknown" in read(setting(facts(outcome=outcome(bytes=None)))).said
    assert "(simulated)" in read(setting(facts(outcome=outcome(seeded=True, started=None)))).said
    assert "graph kind ring" in read(setting(facts(outcome=None))).said


def test_scores_of_models_stand_side_by_side() -> None:
    scores = {"run": [0.91, 0.9], "local": [0.6, None], "central": [0.95, 0.94], "none": [0.97, 0.96]}
    found = read(result(facts(outcome=outcome(score="accuracy", scores=scores)))).rows
    scored = [row[-2:] for row in found if row[-1] in ("0.9", "unknown", "0.94", "0.96")]
    assert scored == [["0.91", "0.9"], ["0.6", "unknown"], ["0.95", "0.94"], ["0.97", "0.96"]]
    assert "test rows" not in read(result(facts())).said


def test_where_nothing_is_published_users_results_are_shown() -> None:
    shown = read(result(facts(outcome=outcome(estimate=None, users_mean=0.25, users_furthest=0.5)))).rows
    assert {"0.25", "0.5"} <= {row[1] for row in shown}
    assert "unknown" not in [row[1] for row in shown[:2]]
    assert read(result(facts(outcome=outcome(estimate=None)))).rows[0][1] == "unknown"


def test_there_is_a_dot_only_where_there_is_an_error_to_draw() -> None:
    assert "The dot" in read(result(facts())).said
    assert "dot" not in read(result(facts(outcome=outcome(truth=None, error=None)))).said


def test_three_ways_to_err_beside_each_other() -> None:
    page = read(error_chart(outcome()))
    bars = [given for name, given in page.elements if name == "rect"]
    widths = [float(bar["width"] or 0) for bar in bars]
    assert widths[0] == pytest.approx(2 * widths[1], rel=0.02)
    assert widths[2] == pytest.approx(4 * widths[0], rel=0.02)
    for word in ("this run", "local DP", "a trusted curator", "off by 1.5"):
        assert word in page.said


def test_without_truth_there_is_no_dot_and_without_rivals_one_bar() -> None:
    page = read(error_chart(outcome(truth=None, error=None, local=None, central=None)))
    assert "circle" not in page.names()
    assert len([name for name, _ in page.elements if name == "rect"]) == 1


def test_an_error_far_off_is_still_on_the_drawing() -> None:
    page = read(error_chart(outcome(error=-1000.0)))
    dot = next(given for name, given in page.elements if name == "circle")
    assert 0.0 < float(dot["cx"] or -1) < 560.0


@pytest.mark.parametrize(
    "change",
    [
        {"standard_error": 0.0, "error": 0.0, "local": None, "central": None},
        {"standard_error": math.inf},
        {"standard_error": 1e308},
        {"standard_error": None, "local": None, "central": None, "error": None},
        {"standard_error": [1.0], "local": [1.0], "central": [1.0], "error": [1.0]},
    ],
)
def test_what_cannot_be_drawn_is_not(change: dict[str, object]) -> None:
    if change == {"standard_error": None, "local": None, "central": None, "error": None}:
        change = change | {"estimate": None}
    assert error_chart(outcome(**change)) == ""


VECTOR = {
    "estimate": [5.0, -1.0, 0.0],
    "standard_error": [1.0, 1.0, 0.0],
    "truth": [4.0, 0.0, 0.0],
    "error": [1.0, -1.0, 0.0],
}


def test_a_bar_and_a_true_value_for_each_number() -> None:
    page = read(counts_chart(outcome(**VECTOR)))
    assert len([name for name, _ in page.elements if name == "rect"]) == 3
    assert len([name for name, _ in page.elements if name == "circle"]) == 3
    assert "0: 5 ± 1.96" in page.said
    without = read(counts_chart(outcome(**VECTOR | {"truth": None})))
    assert "circle" not in without.names()


def test_long_lists_are_cut() -> None:
    long = {name: [1.0] * 500 for name in VECTOR}
    assert len([name for name, _ in read(counts_chart(outcome(**long))).elements if name == "rect"]) == SHOWN_MAX


@pytest.mark.parametrize(
    "change",
    [
        {"estimate": 3.0},
        {"standard_error": 1.0},
        {"estimate": []},
        {"estimate": [1.0, math.inf, 2.0]},
        {"truth": [1e301] * 3},
    ],
)
def test_lists_that_cannot_be_drawn_are_not(change: dict[str, object]) -> None:
    assert counts_chart(outcome(**VECTOR | change)) == ""
