"""What the folder of a run of pairwise sums must hold, judged from its ledgers by a path of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from p2pdp.auditor.verify import excluded_in
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user
from p2pdp.files.folder import read_evidence
from p2pdp.ledger.records import (
    DRAWN,
    INPUTS,
    POOL,
    PUBLISHED,
    RECEIVED,
    SALT_BYTES,
    SENT,
    Record,
    read,
    whole_message,
)
from p2pdp.ledger.stored import bytes_of
from p2pdp.protocols.decision import SURVIVORS
from p2pdp.protocols.pairwise.plan import MASKED, PAIR_KEY, SEEDS, SHARE, Gone, Owners
from p2pdp.wire.codec import unpack_value


@dataclass
class Judged:
    published: Any  # in steps of the grid; None where nothing was published
    survivors: list[Peer]
    excluded: list[Peer]
    revealed: int  # messages that reveal something of a mask


def judged(folder: Path) -> Judged:
    """Check that nobody revealed two things of one neighbour or anything twice, and that the sum is exact."""
    evidence = read_evidence(folder)
    views = {peer: read(bytes_of(data)).records for peer, data in evidence.views.items() if data}
    revealed = 0
    for user in filter(is_user, views):
        sent = [whole_message(record) for record in views[user] if record.kind == SENT]
        count = Counter((one.type, one.fields and str(one.fields)) for one in sent if one.type != SHARE)
        assert all(times == 1 for (kind, _), times in count.items() if kind in (MASKED, PAIR_KEY, SEEDS)), (user, count)
        pairs = {Gone(*one.fields).peer for one in sent if one.type == PAIR_KEY}
        parts = {peer for one in sent if one.type == SEEDS for peer in Owners(*one.fields).users}
        assert not pairs & parts, (user, pairs, parts)
        revealed += len(pairs) + len(parts)
    values = [whole_message(one).value for one in views.get(CURATOR, ()) if one.kind == PUBLISHED]
    out = excluded_in(read(bytes_of(evidence.views[BOOTSTRAP])))
    if not values:
        return Judged(None, [], out, revealed)
    masked = {one.body.sender for one in views[CURATOR] if one.kind == RECEIVED and whole_message(one).type == MASKED}
    survivors = sorted(masked - set(_absent(views[CURATOR])))
    assert np.array_equal(
        values[0], noised_sum(views, {peer: bytes_of(one) for peer, one in evidence.private.items()}, survivors)
    )
    return Judged(values[0], survivors, out, revealed)


def _absent(curator: Sequence[Record]) -> list[Peer]:
    """Return who is not counted, by the decision that the curator received."""
    for record in curator:
        if record.kind == RECEIVED and record.body.sender == BOOTSTRAP:
            message = whole_message(record)
            if message.type == SURVIVORS:
                return list(message.fields[0])
    raise AssertionError("nothing was decided")


def noised_sum(views: Any, private: Any, users: Sequence[Peer], *, noised: bool = True) -> Any:
    """Return the sum of the users' values and first draws, as their private ledgers keep them."""
    total: Any = 0
    for user in users:
        pools: dict[int, Any] = {}
        for record in read(private[user]).records:
            if record.kind in (INPUTS, POOL):
                value = unpack_value((record.value or b"")[SALT_BYTES:])
                if record.kind == POOL:
                    pools[record.body.number] = value
                else:
                    total = total + value[0]
        if noised:
            drawn = next(record.body for record in views[user] if record.kind == DRAWN)
            total = total + pools[drawn.pool][drawn.offset]
    return total


def told_to(folder: Path, receiver: Peer = CURATOR) -> set[str]:
    """Return the types of what users sent this peer."""
    views = read_evidence(folder).views
    records = (one for user, data in views.items() if is_user(user) and data for one in read(data).records)
    return {whole_message(one).type for one in records if one.kind == SENT and one.body.receiver == receiver}
