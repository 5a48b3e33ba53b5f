from __future__ import annotations

import pytest

from p2pdp.core.errors import UsageError
from p2pdp.files.samples import NODE, SAMPLES, sample, samples
from p2pdp.files.spec import load_spec
from p2pdp.protocols import ours
from tests.support.sources import TOP


def test_every_protocol_has_a_sample_and_every_sample_says_what_it_shows() -> None:
    assert {load_spec(one.path).run.protocol for one in samples()} == set(ours())
    for one in samples():
        told = one.to_json()
        spec = load_spec(one.path)
        assert (told["protocol"], told["nodes"]) == (spec.run.protocol, spec.run.nodes)
        assert len(told["shows"]) > 40
        assert "[" not in told["shows"][:1]


def test_there_is_one_copy_and_both_paths_lead_to_it() -> None:
    assert (TOP / "deploy" / "samples").resolve() == SAMPLES
    assert {one.path.stem for one in samples()} >= {path.stem for path in (TOP / "deploy" / "samples").glob("*.toml")}


def test_samples_are_found_by_name() -> None:
    assert sample("ring_sum").document["walk"]["laps"] == 3
    assert "node" in sample(NODE).document
    with pytest.raises(UsageError, match='did you mean "ring_sum"'):
        sample("ring_smu")
