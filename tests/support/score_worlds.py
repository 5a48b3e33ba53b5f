"""Learners whose scores are tested."""

from __future__ import annotations

from typing import Any

from tests.support.learners import LOGISTIC, learning

TESTED = learning(5, 60, task=LOGISTIC + "\ntest = 0.2")


def everybody(run: Any, data: Any) -> list[Any]:
    return [data.user(user) for user in range(run.n)]
