from __future__ import annotations

from p2pdp.core.happenings import happening
from p2pdp.web.picture import EDGES_MAX, ENROLLED, OUT, READY, SILENT, USERS_MAX, picture, states_of, users_part
from p2pdp.web.status import Status
from tests.support.shown import BEGAN_S, first, over

RING = tuple((user, (user + 1) % 4) for user in range(4))


def gathering(n: int = 4) -> Status:
    return first().after(happening("roster", n=n), BEGAN_S)


def test_users_become_ready_one_by_one_and_all_at_the_start() -> None:
    status = gathering()
    assert states_of(status, 4) == [ENROLLED] * 4
    assert states_of(status.counted(1, {}, (0, 2, 3)), 4) == [ENROLLED, READY, ENROLLED, ENROLLED]
    assert states_of(status.counted(4, {}), 4) == [READY] * 4, "it waits for the curator"
    running = status.counted(1, {}, (0, 2, 3)).after(happening("begun"), BEGAN_S)
    assert states_of(running, 4) == [READY] * 4
    silent = running.after(happening("silent", user=3), BEGAN_S)
    assert states_of(silent, 4) == [READY, READY, READY, SILENT]
    assert states_of(silent.after(happening("excluded", user=3), BEGAN_S), 4) == [READY, READY, READY, OUT]


def test_states_differ_in_shape_and_are_told_in_words() -> None:
    drawn = picture(RING, [ENROLLED, READY, SILENT, OUT])
    for state in (ENROLLED, READY, SILENT, OUT):
        assert drawn.count(f'class="mark-{state}"') == 2, "one user, and the key"
    assert "<title>user 2 does not answer</title>" in drawn
    assert drawn.count("<title>user ") == 4
    assert drawn == picture(RING, [ENROLLED, READY, SILENT, OUT])
    assert drawn.count("L") >= len(RING)


def test_a_picture_has_room_for_so_many_users_and_links_and_a_table_for_who_is_away() -> None:
    status = gathering().after(happening("begun"), BEGAN_S)
    found = "".join(users_part(status, RING, "", 60.0))
    assert "<svg" in found
    assert "Nobody is silent" in found
    assert "30 seconds" in found
    assert " 1 second of" in "".join(users_part(status, RING, "", 2.0))
    away = status.after(happening("silent", user=1), BEGAN_S).after(happening("excluded", user=2), BEGAN_S)
    found = "".join(users_part(away, None, "not shown", None))
    assert "<svg" not in found
    assert "not shown" in found
    assert '<time datetime="2023-11-14T22:13:20Z">2023-11-14 22:13:20</time>' in found
    many = gathering(USERS_MAX + 1)
    assert "<svg" not in "".join(users_part(many, RING, "", None))
    assert "<svg" not in "".join(users_part(status, RING * EDGES_MAX, "", None))


def test_before_the_roster_nobody_has_a_number() -> None:
    assert "<svg" not in "".join(users_part(first(), RING, "", None))
    assert "<svg" in "".join(users_part(over(), ((0, 1), (1, 2)), "", None))
