from __future__ import annotations

import pytest

from p2pdp.core.errors import UsageError
from p2pdp.files.checks import applies
from p2pdp.files.spec import parse_spec
from p2pdp.protocols.gossip.options import OPTIONS, SHORT, GossipPart, randomized
from tests.support.spec_bases import GOSSIP, PAIRS


def test_defaults_are_those_of_the_contract() -> None:
    part = GossipPart()
    assert (part.rounds, part.accelerated, part.message_sigma, part.publish) == (None, False, None, "none")
    assert (part.spectral_gap, part.activations, part.precision) == (0.5, None, "full")


def test_rounds_and_activations_exclude_each_other() -> None:
    rounds, pairs = parse_spec(GOSSIP, None), parse_spec(PAIRS, None)
    assert (randomized(rounds), randomized(pairs)) == (False, True)
    assert [applies(rounds, f"gossip.{key}") for key in ("rounds", "accelerated", "activations")] == [True, True, False]
    assert [applies(pairs, f"gossip.{key}") for key in ("rounds", "accelerated", "activations")] == [False, False, True]


def test_the_key_lambda_is_a_field_of_another_name() -> None:
    spec = parse_spec(GOSSIP, None, ["graph.changing=true", "gossip.lambda=0.25"])
    assert spec.options.spectral_gap == 0.25
    assert OPTIONS.renamed == {"lambda": "spectral_gap"}
    with pytest.raises(UsageError, match=r"\[gossip\] spectral_gap: unknown key"):
        parse_spec(GOSSIP, None, ["gossip.spectral_gap=0.25"])


def test_states_in_fewer_bytes_need_noise_of_the_users_own_in_rounds() -> None:
    assert parse_spec(GOSSIP, None, ['gossip.precision="short"']).options.precision == SHORT
    for text, more in (
        (PAIRS, []),
        (GOSSIP, ['noise.mechanism="none"']),
        (GOSSIP, ["noise.pair_sigma=4.0"]),
    ):
        with pytest.raises(UsageError, match=r"\[gossip\] precision"):
            parse_spec(text, None, ['gossip.precision="short"', *more])
