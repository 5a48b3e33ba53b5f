"""Costs that are expected, against runs of the same specs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import p2pdp
from p2pdp.runs.plan import planned_of
from p2pdp.runs.plan_costs import HOP_S, costs_of
from tests.support import small
from tests.support.shuffle_specs import shuffle


@pytest.mark.parametrize("name", sorted(small.ALL))
def test_a_run_has_the_error_and_the_messages_that_were_expected(name: str, tmp_path: Path) -> None:
    spec = p2pdp.load_spec(small.spec_file(tmp_path, small.ALL[name]))
    costs = costs_of(planned_of(spec).run, 1.0, 1e-5)
    result = p2pdp.simulate(spec)
    histogram = spec.task.kind == "histogram"  # whose error depends a little on the counts
    assert np.allclose(costs.standard_error, result.standard_error, rtol=0.2 if histogram else 1e-12)
    assert costs.hops == result.hops
    exact = spec.graph.kind != "complete"  # elsewhere tokens may stay where they are
    assert result.messages is not None
    assert result.bytes is not None
    assert abs(costs.messages - result.messages) <= (0 if exact else 10)
    assert 0.6 * result.bytes <= costs.bytes <= 1.1 * result.bytes
    assert costs.seconds == pytest.approx(costs.hops * HOP_S)


def test_a_mean_is_off_by_less(tmp_path: Path) -> None:
    mean = small.RING + '[task]\nkind = "mean"\n'
    errors = []
    for text in (small.RING, mean):
        found = costs_of(planned_of(p2pdp.load_spec(small.spec_file(tmp_path, text))).run, 1.0, 1e-5)
        errors.append(found.standard_error)
    assert errors[0] == pytest.approx(8 * errors[1])


def test_vectors_and_large_tokens_take_larger_frames(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text((",".join(["0.5"] * 60) + "\n") * 4)
    wide = small.RING.replace("seed = 5\n", "").replace('kind = "uniform"', 'kind = "csv"\npath = "rows.csv"')
    plain = costs_of(planned_of(p2pdp.load_spec(small.spec_file(tmp_path))).run, 1.0, 1e-5)
    vector = costs_of(planned_of(p2pdp.load_spec(small.spec_file(tmp_path, wide))).run, 1.0, 1e-5)
    assert isinstance(vector.standard_error, list)
    assert vector.standard_error == pytest.approx([plain.standard_error] * 60)
    assert vector.bytes > plain.bytes
    assert vector.messages == plain.messages


def test_gossip_counts_rounds_and_exchanges(tmp_path: Path) -> None:
    walk = '[walk]\norder = "random"\nhops = 9\n'
    text = small.BARE.replace(walk, "[gossip]\nrounds = 4\n").replace("walk.sum", "gossip.average")
    text = text.replace('mechanism = "none"', 'mechanism = "gaussian"\nsigma = 2.0')
    spec = p2pdp.load_spec(small.spec_file(tmp_path, text))
    costs = costs_of(planned_of(spec).run, 1.0, 1e-5)
    assert (costs.hops, costs.rounds) == (None, 4)
    assert costs.standard_error == pytest.approx(2.0 / 3**0.5)
    assert costs.messages >= 4 * 6


@pytest.mark.parametrize("protocol", ["all", "single"])
@pytest.mark.parametrize("terms", ["rounds = 12\nstay = 0.2", "rounds = 12\ncover = true"])
def test_shuffling_has_the_error_the_messages_and_bytes_that_were_expected(
    protocol: str, terms: str, tmp_path: Path
) -> None:
    text = shuffle(30, 'kind = "regular"\ndegree = 4', protocol, terms)
    spec = p2pdp.load_spec(small.spec_file(tmp_path, text))
    costs = costs_of(planned_of(spec).run, 1.0, 1e-5)
    result = p2pdp.simulate(spec)
    assert (costs.hops, costs.rounds) == (None, 12)
    assert np.mean(costs.standard_error) == pytest.approx(np.mean(result.standard_error or 0.0), rel=0.25)  # type: ignore[arg-type]
    assert result.messages is not None
    assert result.bytes is not None
    assert costs.messages == pytest.approx(result.messages, rel=0.02)
    assert costs.bytes == pytest.approx(result.bytes, rel=0.15)
