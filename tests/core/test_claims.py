from __future__ import annotations

import dataclasses
import json
import math

import msgpack
import pytest

from p2pdp.core.claims import Claim, Conditioning, Method, Observer, Refusal, Relation, Unit

# guide/commands.md, `audit.json`: what a claim of `audit.json` names, in this order.
NAMES = """observer unit relation delta method conditioning epsilon_max epsilon_mean mu_max mu_mean worst_pair bound
violated_pairs assumptions""".split()


def claim() -> Claim:
    return Claim(
        observer=Observer.NODE,
        unit=Unit.USER,
        relation=Relation.REPLACE,
        delta=1e-6,
        method=Method.EXACT,
        conditioning=Conditioning.PUBLIC,
        epsilon_max=math.inf,
        epsilon_mean=1.5,
        mu_max=math.inf,
        mu_mean=0.25,
        worst_pair=(3, 4),
        bound=True,
        violated_pairs=None,
        assumptions=("discrete treated as continuous",),
    )


def test_a_claim_names_all_its_terms() -> None:
    names = [field.name for field in dataclasses.fields(Claim)]
    assert set(names) == set(NAMES)
    assert not any(field.default is not dataclasses.MISSING for field in dataclasses.fields(Claim))


def test_a_claim_is_a_frozen_value() -> None:
    assert claim() == claim()
    assert len({claim(), claim()}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        claim().epsilon_max = 0.0  # type: ignore[misc]


def test_a_refusal_says_who_how_and_why() -> None:
    assert [field.name for field in dataclasses.fields(Refusal)] == ["observer", "method", "reason", "user"]
    assert Refusal(Observer.NETWORK, Method.EXACT, "nothing hides") != Refusal(
        Observer.NETWORK, Method.EXACT, "no noise"
    )


@pytest.mark.parametrize("term", [*Observer, *Method, *Conditioning])
def test_terms_are_written_as_their_values(term: Observer | Method | Conditioning) -> None:
    value = term.value
    assert f"{term}" == str(term) == value
    assert json.dumps({term: term}) == json.dumps({value: value})
    assert msgpack.packb(term) == msgpack.packb(value)
