"""What every protocol owes to every unit: it protects it and says so, or refuses it by the key of the spec."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import p2pdp
from p2pdp.core.claims import Unit
from p2pdp.core.errors import UsageError
from p2pdp.core.rows import ROWS as FACT
from p2pdp.files.folder import read_evidence
from p2pdp.files.samples import samples
from p2pdp.files.spec import load_spec
from p2pdp.protocols import ours, protocol
from p2pdp.runs.prepared import prepare
from tests.support.record_runs import CATEGORIES, NOTHING, ROWS, protecting_records, record_spec, values

PAIRS = [(name, unit) for name in ours() for unit in Unit]
SAMPLES = {one.document["run"]["protocol"]: one.path for one in samples()}


@pytest.mark.parametrize(("name", "unit"), PAIRS)
def test_a_unit_is_protected_or_refused_by_its_key(name: str, unit: Unit, tmp_path: Path) -> None:
    if unit in protocol(name).units:
        spec = load_spec(SAMPLES[name]) if unit == Unit.USER else record_spec(tmp_path, name)
        assert prepare(spec).run.protected.unit == spec.privacy.unit == unit
        return
    with pytest.raises(UsageError, match=r"\[privacy\] unit: "):
        load_spec(SAMPLES[name], [f'privacy.unit="{unit}"'])


@pytest.mark.parametrize("name", protecting_records())
def test_a_run_that_protects_records_says_so_in_every_claim(name: str, tmp_path: Path) -> None:
    spec = record_spec(tmp_path, name)
    p2pdp.simulate(spec, tmp_path / "run")
    assert p2pdp.verify(tmp_path / "run").problems == []
    evidence = read_evidence(tmp_path / "run")
    assert evidence.roster.entries.rows == ROWS
    assert dict(evidence.roster.facts)[FACT] == ",".join(map(str, ROWS))
    audited = p2pdp.audit(tmp_path / "run", colluders=[1])
    assert audited.claims
    planned = p2pdp.plan(spec)
    for claim in (*audited.claims, *planned.claims):
        assert (claim.unit, claim.relation) == ("record", "replace")
    assert planned.units is not None
    for both in planned.units:
        assert both.user is None or both.user >= both.record
    assert planned.standard_error is not None


@pytest.mark.parametrize("name", protecting_records())
@pytest.mark.parametrize("fast", [False, True])
def test_without_noise_the_estimate_is_that_of_all_rows(name: str, fast: bool, tmp_path: Path) -> None:
    overrides = ["gossip.rounds=60"] if name == "gossip.average" else []
    overrides += ["gossip.activations=400"] if name == "gossip.randomized" else []
    spec = record_spec(tmp_path, name, NOTHING, *overrides)
    result = p2pdp.simulate(spec, fast=fast)
    found = result.estimate if result.estimate is not None else np.mean([one["value"] for one in result.outputs])
    np.testing.assert_allclose(found, result.truth, rtol=1e-6)
    rows = values(spec.task.kind)
    if spec.task.kind == "histogram":
        counts = np.bincount(np.array(rows, dtype=int), minlength=CATEGORIES)
        if not name.startswith("walk"):  # which counts every visit
            assert result.truth == counts.tolist()
    elif not name.startswith("walk"):
        np.testing.assert_allclose(result.truth, np.mean(rows), rtol=1e-9)
    else:
        assert min(rows) < np.mean(result.truth) < max(rows)


@pytest.mark.parametrize("name", protecting_records())
def test_noise_does_not_grow_with_the_number_of_rows(name: str, tmp_path: Path) -> None:
    """The network's local ceiling for one contribution is that of one row, whatever a user has besides."""
    spec = record_spec(tmp_path, name)
    run = prepare(spec).run
    whole = p2pdp.plan(spec)
    ceiling = next(claim for claim in whole.claims if (claim.observer, claim.method) == ("network", "local"))
    if run.plan.noise.name != "gaussian":
        assert ceiling.epsilon_max == pytest.approx(1.5)
    elif not name.startswith("walk"):
        assert ceiling.mu_max == pytest.approx((2**0.5 if spec.task.kind == "histogram" else 24.0) / 2.0, rel=1e-4)
