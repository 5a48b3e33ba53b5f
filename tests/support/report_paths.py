"""Paths that reports took, as ledgers tell."""

from __future__ import annotations

from p2pdp.core.ids import is_user
from p2pdp.core.messages import TOKEN
from p2pdp.ledger.records import OWN, RECEIVED, public_message
from tests.support.runs import Run


def path_of(run: Run) -> dict[int, dict[int, int]]:
    """Of each token, who contributed at which step."""
    path: dict[int, dict[int, int]] = {}
    for peer, contents in run.contents().items():
        for record in contents.records:
            if is_user(peer) and record.kind in (RECEIVED, OWN) and public_message(record).type == TOKEN:
                item, step = public_message(record).fields
                path.setdefault(item, {})[step] = peer
    return path
