from __future__ import annotations

from typing import Any

from p2pdp.experiments import walk_losses, walks
from p2pdp.experiments.contract import Setting
from p2pdp.experiments.walk_losses import Account

QUICK = Setting(quick=True)
ACCOUNTS = (Account("a", "all", 0), Account("s", "some", 1))


def _losses(n: int, walk: int, epsilon_0: float) -> dict[str, dict[str, float]]:
    one = {"mean": n * epsilon_0, "best": n * epsilon_0 - walk, "worst": n * epsilon_0 + walk}
    return {"a": one, "s": one} if walk == 0 else {"a": one}


def test_a_row_for_each_account_with_how_many_walks_it_saw() -> None:
    pieces = walk_losses.pieces(QUICK, _losses, {"more": 3})
    assert pieces[0].facts == {"n": 20, "epsilon_0": 0.1, "walk": 0, "seed": walks.SEED, "more": 3}
    answers: dict[str, Any] = {piece.key: piece.work() for piece in pieces}
    rows = walk_losses.rows(QUICK, answers, ACCOUNTS)
    assert len(rows) == len(walks.EPSILONS) * len(walks.nodes(QUICK)) * 2
    assert rows[:2] == [(0.1, 5, "a", 0.5, -0.5, 1.5, 2), (0.1, 5, "s", 0.5, 0.5, 0.5, 1)]
    made = walk_losses.made(QUICK, answers, ACCOUNTS, "title", ())
    assert made.tables[0].rows == rows
