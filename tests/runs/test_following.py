from __future__ import annotations

import numpy as np

from p2pdp.protocols.learning import Learned
from p2pdp.report.page.curves import OwnCurve, own_curve
from p2pdp.runs.following import POINTS_MAX, Following
from p2pdp.web.page import OWNER, Subject, View, pushed
from p2pdp.web.status import Status
from tests.support.gossip_learners import gossip_learning
from tests.support.learners import learning, prepared
from tests.support.made import read

STEP = "gradients of each user"


def followed(text: str, *, public: bool = True) -> tuple[Following, list[OwnCurve], list[int]]:
    run, data = prepared(text)
    told: list[OwnCurve] = []
    nudged: list[int] = []
    following = Following(told.append)
    following.nudge = lambda: nudged.append(1)
    following.begin(run, data.user(0) if public else None)
    return following, told, nudged


def test_each_point_is_scored_once_and_off_the_loop() -> None:
    following, told, nudged = followed(gossip_learning(4, "ring"))
    for steps in (0, 1, 1, 2):
        before = len(told)
        following.note(Learned(steps, 2, STEP, np.zeros(3)))
        assert len(told) == before, "nothing is scored where it is noted"
        following.work()
        following.work()
    assert len(nudged) == 3
    assert [curve.at for curve in told] == [(0,), (0, 1), (0, 1, 2)]
    assert told[-1].steps == 2
    assert told[-1].loss[0] == told[-1].loss[-1]


def test_a_long_run_has_a_bounded_number_of_points() -> None:
    following, told, _ = followed(gossip_learning(4, "ring"))
    for steps in range(10_001):
        following.note(Learned(steps, 10_000, STEP, np.zeros(3)))
        following.work()
    assert POINTS_MAX <= len(told[-1].at) <= POINTS_MAX + 2
    assert told[-1].at[-1] == 10_000


def test_without_public_rows_or_a_public_schedule_nothing_is_followed() -> None:
    for following, told, nudged in (followed(gossip_learning(4, "ring"), public=False), followed(learning(3, 9))):
        following.note(None)  # what a machine of a walk has
        following.work()
        if not told:
            assert not nudged
    following, told, nudged = followed(gossip_learning(4, "ring"), public=False)
    following.note(Learned(1, 2, STEP, np.zeros(3)))
    following.work()
    assert (told, nudged) == ([], [])


def test_no_machine_of_a_walk_tells_of_its_models() -> None:
    for text, tells in ((learning(3, 9), False), (gossip_learning(4, "ring"), True)):
        run, data = prepared(text)
        machine = run.machine(0, [1, 2], run.protocol.inputs(run.plan, data.user(0))[0])
        assert hasattr(machine, "learned") is tells


def test_the_owners_page_shows_the_curve_and_pushes_it_as_a_part() -> None:
    curve = OwnCurve(10, STEP, 40, "accuracy", (0, 5), (0.7, 0.5), (0.5, 0.75))
    view = View(OWNER, Status("node", 0.0), Subject(curve=curve))
    part = pushed(view)["result-part"]
    assert "after 5 of 10" in read(part).said
    assert part.count("<svg") == 2
    assert "script" not in part
    assert ["accuracy", "0.75"] in read("".join(own_curve(curve))).rows
