from __future__ import annotations

import pytest

from p2pdp.experiments.correlated import CURATOR, INDEPENDENT, MAFALDA, METHODS, NOTHING
from p2pdp.experiments.figures.mafalda import MAFALDA_DIGITS, MAFALDA_HOUSES, all_seen
from p2pdp.mechanisms import gaussian
from tests.support.quick_figures import line, quick


def test_houses_in_the_quick_form() -> None:
    made, answers = quick(MAFALDA_HOUSES)
    errors = answers["florentine-noise"]["error"]
    assert errors[INDEPENDENT] == 1.0
    assert errors[MAFALDA] < 1.0
    assert line(made, "squared mu of user 1 by user 0").verdict == "differs"
    assert line(made, "mu of a row by all messages").verdict == "agrees"
    assert line(made, "test loss at mu 1,").verdict == "cannot be known"  # of a stand-in
    epsilons = next(table for table in made.tables if table.name == "epsilons").rows[-1]
    assert epsilons[1] == pytest.approx(gaussian.epsilon_of(1e-5, 1.0), rel=1e-9)
    assert epsilons[2] == pytest.approx(gaussian.epsilon_of(1e-5, 2.0), rel=1e-9)
    by = dict(answers["leaks"]["by_distance"]["Florentine families"])
    assert by[1] > by[3]
    assert MAFALDA_HOUSES.paper.startswith("Unified Privacy Guarantees")


def test_digits_in_the_quick_form() -> None:
    pytest.importorskip("sklearn")
    made, answers = quick(MAFALDA_DIGITS)
    told = {
        method: answers[f"florentine-{method.lower().replace(' ', '-')}"]["found"][-1]["mean"] for method in METHODS
    }
    assert 1.0 >= told[NOTHING] >= told[CURATOR] - 0.05 > 0.3
    assert line(made, "squared noise in all models").verdict == "agrees"


def test_all_messages_tell_of_a_row_what_its_encoder_says() -> None:
    told = all_seen()
    assert told["from_view"] == pytest.approx(told["by_encoder"], rel=1e-9)
