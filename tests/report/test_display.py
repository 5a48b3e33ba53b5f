from __future__ import annotations

import dataclasses
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt

import p2pdp
from p2pdp.report.display import Pictured, Shown
from p2pdp.runs.audit import Verified
from tests.support.small import ALL, COMPLETE, RING, recorded, spec_file

NAME = "<script>alert(1)</script>"


def everything(folder: Path) -> dict[str, Any]:
    place = recorded(folder, RING)
    return {
        "result": p2pdp.simulate(folder / "spec.toml"),
        "audited": p2pdp.audit(place),
        "verified": p2pdp.verify(place),
        "attacked": p2pdp.attack(place, 1),
        "plan": p2pdp.plan(folder / "spec.toml"),
        "accounted": p2pdp.account("gaussian", mu=1, delta=1e-5),
        "sweep": p2pdp.sweep({"base": folder / "spec.toml", "seeds": 2, "what": "fast", "grid": {"walk.laps": [1, 2]}}),
    }


class Tags(HTMLParser):
    """The names of tags and attributes of a document whose tags are all closed."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_all_are_short_as_text_and_inert_in_a_notebook(tmp_path: Path) -> None:
    for name, shown in everything(tmp_path).items():
        assert isinstance(shown, Shown)
        text = repr(shown)
        assert text.startswith(f"{type(shown).__name__}(")
        assert len(text.splitlines()) <= 2
        assert len(text) < 250
        tags = Tags()
        tags.feed(shown._repr_html_())
        assert tags.open == [], name
        assert tags.names <= {"p", "strong", "div", "table", "thead", "tbody", "tr", "th", "td", "span"}
        assert tags.attributes <= {"class", "data-label", "scope", "tabindex", "role"}


@pytest.mark.parametrize("name", ALL)
def test_no_truth_and_no_value_of_a_user_is_shown(name: str, tmp_path: Path) -> None:
    place = recorded(tmp_path, ALL[name])
    result = p2pdp.simulate(tmp_path / "spec.toml", trials=2)
    attacked = p2pdp.attack(place, 1)
    marked = dataclasses.replace(
        result, truth=4711.5, error=4711.5, outputs=[{"user": 0, "value": 4711.5}],
        trials=[dataclasses.replace(one, truth=4711.5, error=4711.5, estimate=4711.5) for one in result.trials or ()],
    )  # fmt: skip
    read = dataclasses.replace(attacked, targets=[{"user": 0, "estimate": 4711.5, "error": 4711.5}])
    for shown in (marked, read):
        assert "4711" not in repr(shown) + shown._repr_html_()
        assert 4711.5 in shown.to_frame().to_numpy()


def test_texts_from_elsewhere_are_escaped() -> None:
    problems = [{"node": NAME, "index": None, "what": NAME}]
    assert "<script" not in Verified(NAME, None, 0, problems)._repr_html_()


def test_the_headline_is_in_the_text(tmp_path: Path) -> None:
    place = recorded(tmp_path, COMPLETE)
    audited = p2pdp.audit(place)
    headline = audited.to_json()["headline"]
    for shown in (audited, p2pdp.simulate(tmp_path / "spec.toml", tmp_path / "again")):
        assert f"epsilon {headline['epsilon']:.4g}" in repr(shown)
        assert headline["reading"] in repr(shown)
    claims = repr(audited.claims).split("Claim(")[1:]
    assert len(claims) == len(audited.claims)
    assert all(len(one) < 120 for one in claims)


def test_frames_have_numbers_as_numbers(tmp_path: Path) -> None:
    shown = everything(tmp_path)
    claims = shown["audited"].to_frame()
    assert len(claims) == len(shown["audited"].claims)
    assert claims.epsilon_max.dtype == float
    assert shown["plan"].to_frame().epsilon_max.max() == max(one.epsilon_max for one in shown["plan"].claims)
    assert list(shown["verified"].to_frame().columns) == ["node", "index", "what"]
    assert shown["attacked"].to_frame().user.tolist() == [one["user"] for one in shown["attacked"].targets]
    assert shown["accounted"].to_frame().epsilon[0] == shown["accounted"].outputs["epsilon"]
    assert len(shown["sweep"].to_frame()) == 4
    result = shown["result"].to_frame()
    assert (result.estimate[0], result.truth[0]) == (shown["result"].estimate, shown["result"].truth)
    vector = p2pdp.simulate(spec_file(tmp_path, ALL["histogram"]))
    assert vector.to_frame().estimate.tolist() == vector.estimate


def test_without_pandas_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(p2pdp.NotReady, match=r"pip install '\.\[tables\]'"):
        p2pdp.account("gaussian", mu=1, delta=1e-5).to_frame()


def test_pictures_are_drawn_on_new_axes_or_on_given_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mpl.use("Agg")
    before = dict(mpl.rcParams)
    for name, shown in everything(tmp_path).items():
        if isinstance(shown, Pictured):
            axes = shown.plot()
            axes.figure.canvas.draw()
            assert axes.get_title(), name
            given = plt.figure().subplots()
            assert shown.plot(given) is given
            plt.close("all")
    assert dict(mpl.rcParams) == before


def test_users_own_results_are_not_drawn(tmp_path: Path) -> None:
    result = p2pdp.simulate(spec_file(tmp_path))
    hidden = dataclasses.replace(result, estimate=None, standard_error=None)
    with pytest.raises(p2pdp.Refused, match="for them only"):
        hidden.plot()
    plt.close("all")
