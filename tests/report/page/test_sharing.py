from __future__ import annotations

import re

from p2pdp.report.html import html_page
from p2pdp.report.page.facts import Sharing
from p2pdp.report.page.sharing import USERS_MAX, sharing
from tests.support.made import facts

FOUND = Sharing(
    nodes=6,
    edges=[(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)],
    known=frozenset({(2, 3), (3, 4), (4, 5), (0, 5)}),
    colluders=frozenset({3}),
    away=frozenset({5}),
    groups=[(0, 1, 2), (4,)],
)


def shown(found: Sharing) -> str:
    return "\n".join(sharing(found))


def test_each_pair_is_a_line_dashed_where_it_is_known() -> None:
    drawn = shown(FOUND)
    assert len(re.findall(r'<line class="axis"', drawn)) == 2
    assert len(re.findall(r'<line class="here"', drawn)) == 4
    assert drawn.count("<circle") == 6
    assert "user 3, who colludes" in drawn
    assert "user 5, whose value is not in the result" in drawn


def test_users_of_a_group_have_one_colour_and_others_their_own_mark() -> None:
    kinds = {user: kind for kind, user in re.findall(r'<circle class="([^"]+)"[^>]*><title>user (\d)', shown(FOUND))}
    assert kinds["0"] == kinds["1"] == kinds["2"] == "dot s0"
    assert kinds["4"] == "dot s2"
    assert (kinds["3"], kinds["5"]) == ("dot s1", "frame")


def test_many_users_are_listed_and_not_drawn() -> None:
    many = Sharing(USERS_MAX + 1, [(0, 1)], frozenset(), frozenset(), frozenset(), [tuple(range(USERS_MAX + 1))])
    assert "<svg" not in shown(many)
    assert str(USERS_MAX + 1) in shown(many)


def test_a_page_has_it_only_where_noise_is_shared() -> None:
    assert 'id="sharing"' in html_page(facts(sharing=FOUND))
    assert 'id="sharing"' not in html_page(facts())
