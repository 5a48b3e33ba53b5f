from __future__ import annotations

from tests.support.small_figures import Run


def test_traffic_grows_as_a_logarithm_and_ledgers_say_what_the_law_says() -> None:
    run = Run("003-table3")
    assert run.line("reports that a user sends").verdict == "agrees"
    assert run.line("from ledgers").verdict == "agrees"
    assert run.line("with cover").verdict == "agrees"
    for n, expected, mean, most, held, *_ in run.rows():
        assert mean == expected  # nobody stays, so each report moves in each round and is handed in
        assert most >= mean
        assert 1 < held < n
