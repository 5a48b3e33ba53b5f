from __future__ import annotations

import pytest

from p2pdp.core.ids import BOOTSTRAP
from p2pdp.core.step import Message
from p2pdp.core.values import ZERO_FORM
from p2pdp.protocols.gossip.plan import EXCHANGE
from p2pdp.replay.absent import Absent, Handover
from tests.support.gossips import gossip
from tests.support.runs import quiet


def test_who_has_no_whole_ledger_is_absent_and_nothing_of_it_is_rebuilt() -> None:
    run = quiet(gossip(4, "ring", "rounds = 2"))
    views = {peer: view for peer, view in run.contents().items() if peer not in (1, BOOTSTRAP)}
    absent = Absent(run.plan, views)
    assert absent.users == {1}
    message = Message(EXCHANGE, (1, 2))
    assert absent.origin(1, message) is None
    with pytest.raises(NotImplementedError):
        absent.form(1, message, Handover(1, None, 0), ZERO_FORM)
