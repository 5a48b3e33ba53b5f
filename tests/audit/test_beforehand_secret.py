from __future__ import annotations

import pytest

from p2pdp.audit.beforehand_secret import ratio_of, secret_steps, why_not_secret
from p2pdp.audit.ground import Ground
from p2pdp.core.claims import Claim, Refusal
from p2pdp.replay.transcript import Transcript
from tests.protocols.learners import LOGISTIC, learning, prepared

DELTA = 1e-5


def said(text: str, observer: str = "node") -> Claim | Refusal:
    return secret_steps(Ground(prepared(text)[0], {}, Transcript(), (), DELTA, ()), observer, assumed=("so be it",))


def claim(text: str, observer: str = "node") -> Claim:
    found = said(text, observer)
    assert isinstance(found, Claim)
    return found


def test_the_curator_and_the_public_know_less_of_the_path_than_a_neighbour_on_it() -> None:
    node, curator, public = (claim(learning(40, 200, sigma=2.0), one) for one in ("node", "curator", "public"))
    for one in (node, curator, public):
        assert (one.method, one.conditioning, one.bound, one.mu_max) == ("hidden-path", "a-priori", True, None)
        assert one.worst_pair is not None
        assert one.worst_pair[0] == 0, "whose first step everybody knows"
        assert one.epsilon_mean is not None
        assert one.epsilon_max is not None
        assert one.epsilon_mean < one.epsilon_max
        assert "so be it" in one.assumptions
    assert public.epsilon_max < curator.epsilon_max < node.epsilon_max  # type: ignore[operator]


def test_it_asks_nothing_of_the_loss() -> None:
    calm, wild = learning(40, 200, sigma=2.0), learning(40, 200, sigma=2.0, task=LOGISTIC.replace("0.2", "9.0"))
    assert claim(calm).epsilon_max == claim(wild).epsilon_max


def test_of_several_tokens_no_users_first_step_is_known_to_all() -> None:
    public = claim(learning(40, 100, sigma=2.0, tokens=2), "public")
    assert public.epsilon_max == public.epsilon_mean


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (learning(6, 30, kind="grid"), "complete graph only"),
        (learning(6, 30, task=LOGISTIC + "\nbatch = 2"), "batches"),
        (learning(6, 30, sigma=0.01), "times as far"),
        (learning(6, 30, sigma=None), "times as far"),
    ],
)
def test_what_the_secret_does_not_cover_is_refused(text: str, words: str) -> None:
    found = said(text)
    assert isinstance(found, Refusal)
    assert words in found.reason
    assert words in (why_not_secret(prepared(text)[0]) or "")


def test_who_is_a_neighbour_too_often_is_refused() -> None:
    found = said(learning(2, 200))
    assert isinstance(found, Refusal)
    assert "too often" in found.reason


def test_the_ratio_is_sensitivity_over_sigma() -> None:
    assert ratio_of(prepared(learning(5, 12, sigma=0.8))[0]) == pytest.approx(2 / 0.8)
    assert ratio_of(prepared(learning(5, 12, sigma=None))[0]) == float("inf")
