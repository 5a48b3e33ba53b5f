from __future__ import annotations

import pytest

from p2pdp.core.ids import CURATOR
from p2pdp.replay.transcript import UNKNOWN, replay
from tests.support.gossips import gossip
from tests.support.runs import quiet, ring, run_of


@pytest.mark.parametrize("text", [ring(4, 2), gossip(4, "ring", 'rounds = 2\npublish = "all"')])
def test_what_was_sent_to_the_curator_says_what_its_ledger_says(text: str) -> None:
    run = quiet(text)
    views = {peer: contents for peer, contents in run.contents().items() if peer != CURATOR}
    whole, rest = run.transcript().published, replay(run.plan, views).published
    assert whole
    assert rest
    assert [form.expand() for form in rest] == [form.expand() for form in whole]


@pytest.mark.parametrize(("publish", "unknown"), [("one", True), ("none", False)])
def test_what_an_absent_user_handed_in_to_be_published_is_unknown(publish: str, unknown: bool) -> None:
    """It is in every view: a claim about the public that left it out would be wrong."""
    run = run_of(gossip(5, "ring", f'rounds = 2\npublish = "{publish}"'))
    views = {peer: contents for peer, contents in run.contents().items() if peer != 0}
    found = replay(run.plan, views)
    assert found.published is not None
    sources = {source.kind for form in found.published for source in form.expand()}
    assert (UNKNOWN in sources) is unknown
    assert (len(found.published) == 1) is unknown
