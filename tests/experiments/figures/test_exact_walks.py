from __future__ import annotations

import pytest

from p2pdp.experiments.figures.exact_walks import EXACT_WALKS, SHOWN, divergences
from tests.support.quick_figures import quick


def test_the_quick_form() -> None:
    made, answers = quick(EXACT_WALKS)
    assert set(answers) == set(SHOWN)
    assert {one.verdict for one in made.lines} <= {"agrees", "differs"}
    assert answers["ring-sum"]["sound"] == pytest.approx(0.55268, rel=1e-4)
    assert answers["ring-sum"]["published"] == pytest.approx(3.3659, rel=1e-4)
    assert "local" not in answers["ring-sum"]  # infinite
    # what an audit's claims say of the whole ring: 0.0172055
    assert answers["ring-histogram"]["sound"] == pytest.approx(0.0172055, rel=1e-3)
    for case in ("complete-sum", "complete-sgd"):
        assert answers[case]["sound"] < answers[case]["local"]


def test_a_pair_of_neighbours_hides_nothing() -> None:
    """The published divergence falls with the number of users, and so does the sound one."""
    few, many = divergences(8), divergences(16)
    assert few["local"] == many["local"]
    assert many["sound"] < few["sound"] < few["local"]
