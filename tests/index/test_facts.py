from __future__ import annotations

import math
from dataclasses import replace

from tests.index.test_store import CLAIM, FACTS


def test_the_headline_is_the_largest_bound() -> None:
    assert FACTS.epsilon_max == math.inf
    rows = [replace(CLAIM, epsilon_max=epsilon) for epsilon in (2.0, 3.0)]
    rows.append(replace(CLAIM, epsilon_max=9.0, bound=False))
    assert replace(FACTS, claims=rows).epsilon_max == 3.0
    assert replace(FACTS, claims=[replace(CLAIM, epsilon_max=None)]).epsilon_max is None


def test_who_was_put_out_is_counted() -> None:
    out = replace(FACTS.participants[0], state="excluded")
    assert (FACTS.excluded, replace(FACTS, participants=[out]).excluded) == (0, 1)
