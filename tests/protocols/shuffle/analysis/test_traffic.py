from __future__ import annotations

import numpy as np
import pytest

from p2pdp.core import messages
from p2pdp.ledger.records import SENT, public_message
from p2pdp.protocols.shuffle.analysis.traffic import MARK_BYTES, Sent, report_frame_bytes, sent_in, traffic_of
from p2pdp.protocols.shuffle.messages import MARK, RELAY
from p2pdp.wire.padding import FRAME_SIZES
from tests.support.runs import quiet
from tests.support.shuffle_specs import shuffle

TEXT = shuffle(10, 'kind = "regular"\ndegree = 4', terms="rounds = 7\nstay = 0.2")


def test_what_ledgers_say_is_counted_by_user() -> None:
    run = quiet(TEXT)
    sent = sent_in(run.contents(), 10)
    own = [record for record in run.contents()[4].records if record.kind == SENT]
    kinds = [public_message(record).type for record in own]
    assert sent.relayed[4] == kinds.count(RELAY)
    assert sent.handed_in[4] == kinds.count(messages.REPORT)
    assert sent.marks[4] == kinds.count(MARK) == 4 * 7
    assert sent.handed_in.sum() == 10
    assert not sent.cover.any()
    assert 1 <= sent.held <= 10


def test_cover_makes_all_alike() -> None:
    sent = sent_in(quiet(TEXT.replace("stay = 0.2", "cover = true")).contents(), 10)
    assert len(set((sent.relayed + sent.cover).tolist())) == 1


def test_reports_are_as_many_as_rounds_and_bytes_those_of_frames() -> None:
    """[LTT22, Table 3]: reports that a user sends."""
    run = quiet(TEXT)
    plan = run.plan.plan
    found = traffic_of(plan, sent_in(run.contents(), 10))
    assert found["reports_per_user_expected"] == pytest.approx(7 * 0.8 + 1)
    assert found["reports_per_user_mean"] == pytest.approx(6.6, abs=1.5)
    assert found["messages_per_user_mean"] == pytest.approx(found["reports_per_user_mean"] + 28 + 1)
    assert all(found[f"{name}_per_user_max"] >= found[f"{name}_per_user_mean"] for name in ("reports", "bytes"))
    made = traffic_of(plan, Sent(*(np.array(one) for one in ([2, 0], [1, 1], [0, 3], [5, 5])), 2))  # type: ignore[arg-type]
    assert made["bytes_per_user_max"] == 4 * report_frame_bytes(plan) + 6 * MARK_BYTES
    assert report_frame_bytes(plan) in FRAME_SIZES


def test_bytes_are_a_part_of_those_of_the_run() -> None:
    run = quiet(TEXT)
    found = traffic_of(run.plan.plan, sent_in(run.contents(), 10))
    assert 0.3 * run.world.network.bytes <= 10 * found["bytes_per_user_mean"] <= run.world.network.bytes
