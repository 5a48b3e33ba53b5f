from __future__ import annotations

import numpy as np
import pytest

from p2pdp.attacks.truths import ONLY_PLACE, only_contribution, rows_drawn
from p2pdp.files.data import load_data
from p2pdp.ledger.journal import Journal
from p2pdp.ledger.records import DRAWN, Contents, read
from tests.support.row_runs import GOSSIP, WALK
from tests.support.runs import quiet


def test_without_a_draw_the_noised_value_is_the_value() -> None:
    assert only_contribution(3.0, Contents([], skeleton=False, torn_bytes=0), b"") == {ONLY_PLACE: (3.0, 3.0)}


@pytest.mark.parametrize("text", [GOSSIP, WALK])
def test_contributions_over_drawn_rows_are_those_that_were_sent(text: str) -> None:
    """What was seen of a contribution, less what it is over its rows, is the recorded noise."""
    run = quiet(text)
    data = load_data(run.evidence.spec, 5)
    for user in range(5):
        contents, private = read(run.evidence.views[user]), run.evidence.private[user]
        rows = rows_drawn(contents, private)
        assert len(rows) == len(run.transcript().own_noise[user])
        inputs, _ = run.plan.protocol.inputs(run.plan.plan, data.user(user))
        found = run.plan.protocol.analysis().truths(run.plan, user, inputs, contents, private)
        noises = np.array([noised - clean for clean, noised in found.values()])
        assert np.abs(noises).max() < 6.0 * run.plan.plan.noise.scale
        drawn = next(one.body for one in contents.records if one.kind == DRAWN and one.body.mechanism == "gaussian")
        first = Journal(private=private).drawn(drawn.pool, drawn.offset)
        assert np.abs(noises[0] - first).max() < 1e-3 * run.plan.plan.noise.scale  # the dither of models
