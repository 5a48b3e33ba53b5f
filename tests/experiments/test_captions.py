from __future__ import annotations

import re

import pytest

from p2pdp.experiments.captions import alt_text, caption_page
from p2pdp.experiments.contract import Caption, Experiment, Made
from p2pdp.experiments.figures import experiments

CAPTION = Caption("Curves of a.", "a with b.", "a is [above].", "a is below.", "b is none.")
EXPERIMENT = Experiment("x-fig1", "title", lambda _setting: [], lambda _setting, _answers: Made((), (), ()), CAPTION)


def _document(**more: object) -> dict[str, object]:
    caption = {name: getattr(CAPTION, name) for name in ("shows", "compares", "see", "paper", "no_bound", "alt")}
    line = {"what": "a|b", "ours": 0.123456, "paper": None, "verdict": "agrees", "why": "so"}
    return {
        "name": "x-fig1", "title": "title", "paper": "A Paper, figure 1", "caption": caption, "stand_in": False,
        "quick": False, "lines": [line], "seeds": [7], "versions": {"p2pdp": "1"},
        "files": ["x-fig1.csv", "x-fig1.png", "x-fig1.svg", "x-fig1.pdf"], **more,
    }  # fmt: skip


def test_a_page_has_the_picture_its_words_and_each_line() -> None:
    page = caption_page(_document())
    assert page.startswith("# x-fig1: title\n")
    assert "![Curves of a. a is (above).](x-fig1.png)" in page
    assert [found[1] for found in re.finditer(r"(?m)^\*\*(.+?)\.\*\*", page)] == [
        "Shows", "Compares", "What to see", "The paper", "No bound",
    ]  # fmt: skip
    assert "| a\\|b | 0.1235 |  | agrees | so |" in page
    assert all(f"[{file}]({file})" in page for file in ("x-fig1.csv", "x-fig1.svg", "x-fig1.pdf", "x-fig1.json"))


def test_quick_forms_and_stand_ins_are_said() -> None:
    assert "Quick form" in caption_page(_document(quick=True))
    assert "no real data" in caption_page(_document(quick=True, stand_in=True))
    assert alt_text(EXPERIMENT, "") == CAPTION.alt
    assert alt_text(EXPERIMENT, "quick").endswith("(quick.)")


@pytest.mark.parametrize("name", list(experiments()))
def test_every_figure_explains_itself(name: str) -> None:
    """Axes or what is drawn, what is compared, what to see and the paper's statement, in whole sentences."""
    caption = experiments()[name].caption
    for text in (caption.shows, caption.compares, caption.see, caption.paper):
        assert len(text.split()) >= 4, text
        assert text.endswith((".", ").")), text
        assert "  " not in text
    assert 80 <= len(caption.alt) <= 900
