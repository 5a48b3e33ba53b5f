from __future__ import annotations

import pytest

from p2pdp.core.errors import UsageError
from p2pdp.files.spec import parse_spec, spec_to_toml
from p2pdp.protocols.pairwise.options import survivors_min
from tests.support.pairwise_world import pairwise

WITH_PAIRS = 'mechanism = "gaussian"\nsigma = 1.0\npair_sigma = 2.0'


@pytest.mark.parametrize(("n", "least"), [(1, 1), (2, 2), (3, 2), (4, 3), (30, 20), (31, 21)])
def test_two_thirds_are_needed_by_default(n: int, least: int) -> None:
    assert survivors_min(parse_spec(pairwise(n), None), n) == least


def test_all_are_needed_by_uniform_masks_that_stay() -> None:
    assert survivors_min(parse_spec(pairwise(9, terms='settle = "none"'), None), 9) == 9
    spec = parse_spec(pairwise(9, terms='settle = "none"\nmasks = "gaussian"', noise=WITH_PAIRS), None)
    assert survivors_min(spec, 9) == 6


@pytest.mark.parametrize(
    ("terms", "noise", "privacy", "key"),
    [
        ("survivors_min = 10", "", "", "[pairwise] survivors_min"),
        ('survivors_min = 8\nsettle = "none"', "", "", "[pairwise] survivors_min"),
        ('masks = "gaussian"', "", "", "[noise] pair_sigma"),
        ("", WITH_PAIRS, "", "[noise] pair_sigma"),
        ("survivors_min = 4", "", "colluders_max = 4", "[privacy] colluders_max"),
        ("", "", "colluders_max = 6", "[privacy] colluders_max"),
        ('masks = "gauss"', "", "", "[pairwise] masks"),
        ("", 'mechanism = "laplace"\nsigma = 1.0', "", "[noise] mechanism"),
    ],
)
def test_what_does_not_go_together_is_refused_by_its_key(terms: str, noise: str, privacy: str, key: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_spec(pairwise(9, terms=terms, noise=noise, privacy=privacy), None)
    assert str(caught.value).startswith(key)


def test_other_protocols_take_no_colluders() -> None:
    text = pairwise(9, privacy="colluders_max = 2").replace("pairwise.sum", "gossip.average")
    with pytest.raises(UsageError, match="colluders_max"):
        parse_spec(text.replace("[pairwise]", "[gossip]\nrounds = 1"), None)


def test_a_spec_is_written_and_read_again() -> None:
    terms = 'masks = "gaussian"\nsurvivors_min = 5'
    spec = parse_spec(pairwise(9, terms=terms, noise=WITH_PAIRS, privacy="colluders_max = 2"), None)
    assert parse_spec(spec_to_toml(spec), None) == spec
