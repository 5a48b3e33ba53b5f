from __future__ import annotations

from pathlib import Path

from tests.support.small_figures import Run


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
