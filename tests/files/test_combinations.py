from __future__ import annotations

import pytest

from p2pdp.files.combinations import POSSIBLE, mechanisms, tasks
from p2pdp.files.spec import parse_spec
from tests.support.spec_bases import BASES


@pytest.mark.parametrize("base", BASES)
def test_every_protocol_has_mechanisms_for_each_of_its_tasks_and_its_own_is_one(base: str) -> None:
    spec = parse_spec(base, None)
    assert spec.noise.mechanism in mechanisms(spec)
    assert spec.task.kind in tasks(spec)


def test_each_entry_names_a_key_and_says_why_in_a_sentence() -> None:
    spec = parse_spec(BASES[0], None)
    for name, possible, why in POSSIBLE:
        assert name.count(".") == 1
        assert possible(spec)
        assert why(spec).endswith(".")
