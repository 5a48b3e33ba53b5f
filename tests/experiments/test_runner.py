from __future__ import annotations

import csv
import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from p2pdp.core.errors import NotReady, RunFailed, UsageError
from p2pdp.experiments import runner
from p2pdp.experiments.contract import (
    QUICK_NOTE,
    STAND_IN,
    Answers,
    Caption,
    Experiment,
    Made,
    Picture,
    Piece,
    Setting,
    Table,
    compared,
)
from p2pdp.experiments.runner import reproduce

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

QUICK = Setting(quick=True)
CAPTION = Caption("A curve of squares.", "One with the other.", "It rises.", "It falls.")


def _squared(counted: Path, number: int) -> dict[str, Any]:
    """Leaves a trace of each time that it was really worked out."""
    with (counted / f"{number}").open("a") as file:
        file.write("x")
    if (counted / f"refuse-{number}").exists():
        raise UsageError(f"{number} cannot be.")
    if (counted / f"break-{number}").exists():
        raise ValueError(f"{number} broke")
    return {"square": number * number}


def _make(_setting: Setting, answers: Answers) -> Made:
    rows = [(key, answer["square"]) for key, answer in answers.items()]

    def draw(figure: Figure) -> None:
        figure.subplots().plot([square for _, square in rows])

    line = compared("sum", float(sum(square for _, square in rows)), 5.0, "of squares", absolute=0.5)
    return Made(
        (Table("", ("key", "square"), rows), Table("more", ("a",), [(1,)])), (line,), (Picture("", 2, 2, draw),)
    )


def _experiment(counted: Path, name: str = "x-fig1", scale: int = 1, needs: tuple[str, ...] = ()) -> Experiment:
    def pieces(_setting: Setting) -> list[Piece]:
        return [Piece(f"n{n}", partial(_squared, counted, n * scale), {"n": n, "scale": scale}) for n in (2, 1)]

    return Experiment(name, "squares", pieces, _make, CAPTION, needs, seeds=(7,))


def _times(counted: Path) -> dict[str, int]:
    return {place.name: len(place.read_text()) for place in counted.iterdir() if place.name.isdigit()}


@pytest.fixture
def counted(tmp_path: Path) -> Path:
    (tmp_path / "counted").mkdir()
    return tmp_path / "counted"


def test_files_and_document(tmp_path: Path, counted: Path) -> None:
    told: list[tuple[str, int, int]] = []
    out = tmp_path / "out"
    (document,) = reproduce([_experiment(counted)], QUICK, out, 2, lambda *one: told.append(one))
    assert json.loads((out / "x-fig1.json").read_text()) == document
    assert document["files"] == [
        "x-fig1.csv", "x-fig1-more.csv", "x-fig1.png", "x-fig1.svg", "x-fig1.pdf", "x-fig1.md", "x-fig1.alt.txt",
    ]  # fmt: skip
    assert all((out / name).is_file() for name in document["files"])
    assert (document["width"], document["caption"]["alt"]) == ("double", f"{CAPTION.alt} ({QUICK_NOTE}.)")
    assert (out / "x-fig1.alt.txt").read_text() == document["caption"]["alt"] + "\n"
    assert document["caption"]["alt"].encode() in (out / "x-fig1.svg").read_bytes()
    assert "It falls." in (out / "x-fig1.md").read_text()
    assert document["seeds"] == [7]
    assert document["settings"] == {"n2": {"n": 2, "scale": 1}, "n1": {"n": 1, "scale": 1}}
    assert document["lines"][0]["verdict"] == "agrees"
    assert set(document["versions"]) >= {"p2pdp", "python", "numpy", "matplotlib"}
    with (out / "x-fig1.csv").open() as file:
        assert list(csv.reader(file)) == [["key", "square"], ["n2", "4"], ["n1", "1"]]
    assert [(done, total) for _, done, total in told] == [(1, 3), (2, 3), (3, 3)]


def test_answers_are_kept_while_their_facts_are_the_same(tmp_path: Path, counted: Path) -> None:
    out = tmp_path / "out"
    first = reproduce([_experiment(counted)], QUICK, out, 1)
    pictures = (out / "x-fig1.svg").read_bytes()
    assert reproduce([_experiment(counted)], QUICK, out, 2) == first
    assert (out / "x-fig1.svg").read_bytes() == pictures
    assert _times(counted) == {"1": 1, "2": 1}
    (out / "pieces" / "x-fig1-quick" / "n1.json").unlink()
    reproduce([_experiment(counted)], QUICK, out, 1)
    assert _times(counted) == {"1": 2, "2": 1}
    reproduce([_experiment(counted)], Setting(), out, 1)
    assert _times(counted) == {"1": 3, "2": 2}
    reproduce([_experiment(counted, scale=3)], QUICK, out, 1)
    assert _times(counted) == {"1": 3, "2": 2, "3": 1, "6": 1}


def test_other_data_make_other_answers(tmp_path: Path, counted: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    experiment = _experiment(counted, needs=("a.csv",))
    documents = []
    for text in ("1\n", "2\n", "2\n"):
        (data / "a.csv").write_text(text)
        documents += reproduce([experiment], Setting(quick=True, data=data), out, 1)
    assert _times(counted) == {"1": 2, "2": 2}
    assert documents[0]["data"] != documents[1]["data"] == documents[2]["data"]
    (document,) = reproduce([experiment], QUICK, out, 1)
    assert (document["data"], document["stand_in"]) == ({"a.csv": "stand-in"}, True)
    assert document["lines"][0]["verdict"] == "cannot be known"
    assert document["lines"][0]["why"].startswith(STAND_IN)
    assert documents[0]["lines"][0]["verdict"] == "agrees"


def test_what_fails_is_named_and_what_was_done_is_kept(tmp_path: Path, counted: Path) -> None:
    out = tmp_path / "out"
    (counted / "refuse-1").touch()
    both = [_experiment(counted), _experiment(counted, "x-fig2", scale=5)]
    with pytest.raises(UsageError, match=r"x-fig1: n1: 1 cannot be"):
        reproduce(both, QUICK, out, 1)
    assert (out / "x-fig2.json").is_file()
    assert not (out / "x-fig1.json").exists()
    (counted / "refuse-1").unlink()
    assert len(reproduce(both, QUICK, out, 1)) == 2
    assert _times(counted) == {"1": 2, "2": 1, "5": 1, "10": 1}


def test_data_are_at_fault_only_where_nothing_else_is(tmp_path: Path, counted: Path) -> None:
    (counted / "refuse-1").touch()
    (counted / "break-5").touch()
    both = [_experiment(counted), _experiment(counted, "x-fig2", scale=5)]
    with pytest.raises(RunFailed, match=r"(?s)x-fig1: n1: 1 cannot be; x-fig2: n1: 5 broke"):
        reproduce(both, QUICK, tmp_path / "out", 1)


def test_missing_data_is_said_before_anything_begins(tmp_path: Path, counted: Path) -> None:
    with pytest.raises(UsageError, match=r"needs a\.csv"):
        reproduce([_experiment(counted, needs=("a.csv",))], Setting(), tmp_path / "out", 1)
    assert not (tmp_path / "out").exists()


def test_a_missing_library_is_said_before_anything_begins(
    tmp_path: Path, counted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_LIBRARIES", ("numpy", "no_such_library"))
    with pytest.raises(NotReady, match="needs no_such_library"):
        reproduce([_experiment(counted)], QUICK, tmp_path / "out", 1)
    assert not (tmp_path / "out").exists()
