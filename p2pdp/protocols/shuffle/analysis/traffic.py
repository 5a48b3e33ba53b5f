"""How much each user of network shuffling sent and held, beside what [LTT22, Table 3] says of it.

The table counts the reports that a user sends: one a round on the average, hence as many as there are rounds, which
grow as log n over the spectral gap where walks shall mix; and what a user holds at once, which does not grow with n.
Marks and cover are not in it, for there rounds are told by a clock. Bytes are those of padded frames, without
acknowledgements that travel alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Ints
from p2pdp.core.ids import Peer, is_user
from p2pdp.core.messages import REPORT
from p2pdp.ledger.records import SENT, Contents, public_message
from p2pdp.protocols.shuffle.messages import COVER, MARK, MESSAGES, RELAY
from p2pdp.protocols.shuffle.plan import ShufflePlan
from p2pdp.wire.padding import frame_size

MARK_BYTES: Final = frame_size(0)
_ENVELOPE_BYTES: Final = 192  # of a frame around a sealed report


@dataclass(frozen=True)
class Sent:
    """Of each user; `held` is the most reports that anybody held at once, as far as they were passed on."""

    relayed: Ints
    handed_in: Ints
    cover: Ints
    marks: Ints
    held: int


def report_frame_bytes(plan: ShufflePlan) -> int:
    """Of a report, or cover, on its way."""
    return frame_size(_ENVELOPE_BYTES + plan.sealed_bytes)


def sent_in(views: Mapping[Peer, Contents], n: int) -> Sent:
    """From the users' own ledgers."""
    kinds = (RELAY, REPORT, COVER, MARK)
    counts = np.zeros((len(kinds), n), dtype=np.int64)
    held = 0
    for user, contents in views.items():
        if not is_user(user):
            continue
        batches: dict[int, int] = {}
        for record in contents.records:
            if record.kind != SENT:
                continue
            message = public_message(record)
            if message.type in kinds:
                counts[kinds.index(message.type), user] += 1
            if message.type in (RELAY, REPORT):
                number = MESSAGES.step_of(message)
                batches[number] = batches.get(number, 0) + 1
        held = max(held, *batches.values(), 0)
    relayed, handed_in, cover, marks = counts
    return Sent(relayed, handed_in, cover, marks, held)


def traffic_of(plan: ShufflePlan, sent: Sent) -> dict[str, Any]:
    """Numbers by name, as `result.json` has them; a user's part ends with one message that says so."""
    reports = sent.relayed + sent.handed_in
    messages = reports + sent.cover + sent.marks + 1
    frames = (reports + sent.cover) * report_frame_bytes(plan) + (sent.marks + 1) * MARK_BYTES
    found: dict[str, Any] = {}
    for name, counts in (("reports", reports), ("messages", messages), ("bytes", frames)):
        found[f"{name}_per_user_mean"] = float(counts.mean())
        found[f"{name}_per_user_max"] = int(counts.max())
    return found | {"reports_per_user_expected": plan.rounds * (1.0 - plan.stay) + 1.0, "reports_held_max": sent.held}
