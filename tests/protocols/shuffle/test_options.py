from __future__ import annotations

import pytest

from p2pdp.core.errors import UsageError
from p2pdp.files.spec import parse_spec
from p2pdp.protocols.shuffle.options import ShufflePart
from tests.support.spec_bases import SHUFFLE


def test_defaults_are_those_of_the_contract() -> None:
    assert ShufflePart() == ShufflePart(rounds=None, stay=0.0, cover=False)


@pytest.mark.parametrize("rounds", ["12", '"auto"', '"mixing"'])
def test_rounds_are_a_number_or_a_word(rounds: str) -> None:
    spec = parse_spec(SHUFFLE, None, [f"shuffle.rounds={rounds}"])
    assert str(spec.options.rounds) == rounds.strip('"')


def test_rounds_are_needed() -> None:
    with pytest.raises(UsageError, match=r"^\[shuffle\] rounds: missing"):
        parse_spec(SHUFFLE.replace('rounds = "mixing"', "stay = 0.5"), None)
