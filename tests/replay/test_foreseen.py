from __future__ import annotations

import pytest

from p2pdp.core.errors import Refused
from p2pdp.files.spec import parse_spec
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.replay.foreseen import foresee
from tests.support.gossips import gossip
from tests.support.runs import quiet, ring, run_of, walk


def planned(text: str) -> RunPlan:
    spec = parse_spec(text, None)
    return plan_run(spec, spec.run.nodes, 1)


def test_a_ring_is_foreseen_as_it_comes_to_pass() -> None:
    text = ring(5, 2)
    seen, ahead = run_of(text).transcript(), foresee(planned(text)).transcript
    assert seen.published is not None
    assert ahead.published is not None
    assert [form.expand() for form in ahead.published] == [form.expand() for form in seen.published]
    assert ahead.draws == seen.draws
    assert ahead.own_noise == seen.own_noise
    for user in range(5):
        assert [form.expand() for form in ahead.received[user]] == [form.expand() for form in seen.received[user]]


def test_gossip_is_foreseen_with_its_results() -> None:
    text = gossip(5, "ring", 'rounds = 3\npublish = "one"')
    seen, ahead = run_of(text, reordering=False).transcript(), foresee(planned(text)).transcript
    for user in range(5):
        assert ahead.finals[user].expand() == pytest.approx(seen.finals[user].expand())
        assert len(ahead.received[user]) == len(seen.received[user])


def test_random_routes_are_not_foreseen() -> None:
    with pytest.raises(Refused, match="chance"):
        foresee(planned(walk(5, 20)))


def test_nothing_is_foreseen_on_a_graph_that_is_not_known() -> None:
    with pytest.raises(Refused, match="graph"):
        foresee(quiet(gossip(5, "ring", "rounds = 1")).plan)


def test_what_is_too_long_is_not_foreseen() -> None:
    with pytest.raises(Refused, match="too long"):
        foresee(planned(gossip(5, "ring", "rounds = 100000")))
