"""Paths of tokens, as ledgers tell."""

from __future__ import annotations

from typing import Any

import numpy as np

from p2pdp.core.messages import TOKEN
from p2pdp.ledger.records import OWN, RECEIVED, public_message
from tests.support.runs import Run


def paths(run: Run) -> Any:
    """[token, step] -> user, from the records of all."""
    plan = run.plan.plan
    found = np.full((plan.tokens, plan.steps), -1)
    for peer, contents in run.contents().items():
        for record in contents.records if peer >= 0 else ():
            if record.kind in (RECEIVED, OWN) and public_message(record).type == TOKEN:
                item, step = public_message(record).fields
                found[item, step - 1] = peer
    assert found.min() >= 0
    return found
