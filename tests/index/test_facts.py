from __future__ import annotations

import math
from dataclasses import replace

from tests.support.index_rows import FACTS


def test_epsilon_is_the_headlines() -> None:
    assert FACTS.epsilon_max == math.inf
    assert replace(FACTS, headline={"epsilon": 2.5}, worst={"epsilon": "inf"}).epsilon_max == 2.5
    assert replace(FACTS, headline=None).epsilon_max is None


def test_who_was_put_out_is_counted() -> None:
    out = replace(FACTS.participants[0], state="excluded")
    assert (FACTS.excluded, replace(FACTS, participants=[out]).excluded) == (0, 1)
