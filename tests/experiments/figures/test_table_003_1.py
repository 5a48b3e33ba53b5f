from __future__ import annotations

from tests.support.small_figures import Run


def test_the_printed_rate_is_not_that_of_the_theorem_it_cites() -> None:
    run = Run("003-table1")
    theirs = run.line("network, all: exponent")
    assert theirs.verdict == "differs"
    assert isinstance(theirs.ours, float)
    assert abs(theirs.ours - 3.0) < 0.1
    assert run.line("network, sound: exponent").verdict == "agrees"
    assert all(line.verdict == "agrees" for what, line in run.lines.items() if "power of n" in what)
