from __future__ import annotations

from pathlib import Path

from tests.support.small_figures import Run


def test_the_printed_rate_is_not_that_of_the_theorem_it_cites() -> None:
    run = Run("003-table1")
    theirs = run.line("network, all: exponent")
    assert theirs.verdict == "differs"
    assert isinstance(theirs.ours, float)
    assert abs(theirs.ours - 3.0) < 0.1
    assert run.line("network, sound: exponent").verdict == "agrees"
    assert all(line.verdict == "agrees" for what, line in run.lines.items() if "power of n" in what)


def test_stand_ins_are_compared_with_nothing() -> None:
    run = Run("003-table4")
    assert {line.verdict for line in run.made.lines} == {"cannot be known"}


def test_printed_gammas_come_of_half_a_matrix(data_dir: Path) -> None:
    run = Run("003-table4", data_dir)
    for name in ("facebook", "twitch", "deezer", "enron"):
        assert run.line(f"{name}: users").verdict == "agrees"
        assert run.line(f"{name}: Gamma as defined").verdict == "differs"
        assert run.line(f"{name}: Gamma from half").verdict == "agrees"
    assert run.line("google").verdict == "cannot be known"
