from __future__ import annotations

import math

import pytest

from p2pdp.experiments.figures import walk_losses as fig_000_2b
from p2pdp.experiments.figures.walk_theorems import FIGURE_1, FIGURE_2A, first_gain, formulas, losses, sound
from p2pdp.privacy.composition import advanced
from p2pdp.privacy.contract import account
from tests.support.quick_figures import line, quick


def test_the_quick_form() -> None:
    made, answers = quick(FIGURE_2A)
    assert line(made, "visits counted").ours == 156
    assert line(made, "visits counted").paper == pytest.approx(1655, abs=1)
    assert line(made, "visits counted").verdict == "differs"
    assert line(made, "first version").verdict == line(made, "version of 2022").verdict == "agrees"
    assert answers["sound-n20"]["sound"] < answers["sound-n20"]["sound-local"]


def test_formulas_are_those_of_the_named_accountants() -> None:
    terms = {
        "epsilon": 0.1, "delta": 1e-12, "n": 300, "hops": 30_000, "delta_prime": 1e-7, "delta_hat": 1e-7,
    }  # fmt: skip
    found = formulas(300, 0.1)
    assert found["first"] == account("complete_sum_v1", terms).outputs["epsilon"]
    assert found["second"] == account("complete_sum", terms).outputs["epsilon"]
    assert found["local-fixed"] == advanced(0.1, 100, 1e-7) == pytest.approx(6.729401608311588)
    assert found["second-fixed"] == pytest.approx(advanced(0.3 / math.sqrt(300), 200, 1e-7))


def test_gains_begin_where_they_stay() -> None:
    for name in ("first", "second"):
        least = first_gain(name)
        assert formulas(least, 0.1)[name] < formulas(least, 0.1)["local"]
        assert formulas(least - 1, 0.1)[name] >= formulas(least - 1, 0.1)["local"]


def test_the_sound_curves() -> None:
    """Known from a run: at n = 20 the worst pair's a-priori epsilon is 0.2386; local is the Gaussian curve's."""
    found = sound(20, 0.1)
    assert found["sound"] == pytest.approx(0.23856, rel=1e-4)
    assert found["sound"] < found["sound-local"] < 1.0


def test_the_quick_form_1() -> None:
    made, _ = quick(FIGURE_1)
    assert line(made, "network DP below local DP").ours == "from n = 13 on"
    assert line(made, "mean loss by the recipe").verdict == "agrees"
    assert line(made, "theorem over recipe").verdict == "agrees"
    assert [table.name for table in made.tables] == ["", "theory"]


def test_its_walks_are_those_of_the_paper_before() -> None:
    whole = fig_000_2b.losses(10, 1, 0.4)
    assert losses(10, 1, 0.4) == {name: whole[name] for name in ("local", "recipe")}
