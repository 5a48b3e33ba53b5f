"""Attacks on pairwise sums by whoever knows everybody else's value, scored against the claims of an audit.

A histogram of thousands of categories is as many runs at once: each number has noise of its own. The score is the best
one, the likelihood ratio; claims of Gaussians are tight, so its signal over its noise is that of the claim, no more and
no less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from p2pdp.auditor.context import AuditContext
from p2pdp.auditor.exact import exact_account
from p2pdp.core.claims import Observer
from p2pdp.core.draws import Mechanism
from p2pdp.core.ids import CURATOR
from p2pdp.ledger.records import PAIRED, RECEIVED, SALT_BYTES, public_message, read, whole_message
from p2pdp.mechanisms.sampler import StreamSampler
from p2pdp.protocols.pairwise.analysis.decoding import read_by_curator
from p2pdp.protocols.pairwise.plan import MASKED
from p2pdp.sim.faults import Crash
from tests.support.pairwise_runs import Ran, simulated
from tests.support.pairwise_world import pairwise

CATEGORIES = 6000
COUNTS = f'[data]\nkind = "categories"\n[task]\nkind = "histogram"\ncategories = {CATEGORIES}'
MASKS = 'mechanism = "gaussian"\nsigma = 1.0\npair_sigma = 3.0'
RING = '"ring"'
WITHIN = 5.0 / math.sqrt(2.0 * CATEGORIES)  # five deviations of a standard deviation that is estimated


def claimed(ran: Ran, colluders: Sequence[int]) -> dict[str, float]:
    """The mu of each observer for a change of one number by one."""
    context = AuditContext(ran.run, ran.recorded.views, ran.recorded.transcript, (), 1e-5, colluders)
    unit = context.sensitivity * math.ldexp(1.0, ran.run.plan.grid_exponent)
    return {one.observer: (one.mu_max or 0.0) / unit for one in exact_account(context).claims}


def noise_of(ran: Ran, users: Sequence[int], total: Any) -> Any:
    """What is left of a sum that was read once the users' true values are taken off, in counts."""
    values = sum(ran.run.protocol.inputs(ran.run.plan, ran.rows(user))[0].contribution(0) for user in users)
    return (total - values) * math.ldexp(1.0, ran.run.plan.grid_exponent)


def shared(ran: Ran, user: int) -> dict[int, Any]:
    """What a colluding user shares with each neighbour, unfolded from the keys in its own ledger."""
    found = {}
    for record in read(bytes(ran.world.processes[user].disk.view)).records:
        if record.kind == PAIRED:
            peer, _, name, scale, categories, shape = record.body
            sampler = StreamSampler((record.value or b"")[SALT_BYTES:])
            drawn = sampler.batch(Mechanism(name, scale, categories), tuple(shape), 1)[0]
            found[peer] = drawn * math.ldexp(1.0, ran.run.plan.grid_exponent)
    return found


@pytest.mark.parametrize("colluders", [(), (0, 1), (0, 4)])
def test_behind_gaussian_masks_the_best_score_has_the_signal_that_is_claimed(colluders: tuple[int, ...]) -> None:
    ran = simulated(pairwise(8, RING, 'masks = "gaussian"\nsurvivors_min = 8', noise=MASKS, data=COUNTS), 4)
    seen = {user: noise_of(ran, (user,), total) for (user,), total, _ in _read(ran)}
    for one in colluders:
        del seen[one]
        for peer, drawn in shared(ran, one).items():
            if peer in seen:
                seen[peer] = seen[peer] - drawn if peer < one else seen[peer] + drawn
    honest = sorted(seen)
    laplacian = np.zeros((8, 8))
    for one, other in ((user, (user + 1) % 8) for user in range(8)):
        if one in seen and other in seen:
            laplacian[[one, other], [one, other]] += 1.0
            laplacian[[one, other], [other, one]] -= 1.0
    covariance = (np.eye(8) + 9.0 * laplacian)[np.ix_(honest, honest)]
    signals = []
    for place in range(len(honest)):
        weights = np.linalg.solve(covariance, np.eye(len(honest))[place])
        score = sum(weight * seen[user] for weight, user in zip(weights, honest, strict=True))
        signals.append(weights[place] / float(np.std(score)))
    claim = claimed(ran, colluders)[Observer.POOLED if colluders else Observer.CURATOR]
    assert max(signals) == pytest.approx(claim, rel=2.0 * WITHIN)  # the largest of several estimates


@pytest.mark.parametrize("gone", [(), (2, 5)])
def test_behind_masks_the_sums_that_can_be_read_have_the_signal_that_is_claimed(gone: tuple[int, ...]) -> None:
    crashes = [Crash(user, at_s=0.0075, down_s=None) for user in gone]
    ran = simulated(pairwise(8, RING, "survivors_min = 5", data=COUNTS), 4, *crashes)
    assert sorted(ran.world.out) == list(gone)
    signals = [1.0 / float(np.std(noise_of(ran, users, total))) for users, total, _ in _read(ran)]
    assert len(signals) == (2 if gone else 1)
    assert max(signals) == pytest.approx(claimed(ran, ())[Observer.CURATOR], rel=WITHIN)


def test_a_masked_value_alone_is_uniform() -> None:
    """By its highest 4 bits and its lowest: chi-square with 15 degrees of freedom exceeds 60 once in four million."""
    ran = simulated(pairwise(8, RING, data=COUNTS), 4)
    for record in ran.recorded.views[CURATOR].records:
        if record.kind == RECEIVED and public_message(record).type == MASKED:
            value = whole_message(record).value.view(np.uint64)
            for part in (value >> np.uint64(60), value & np.uint64(15)):
                counts = np.bincount(part.astype(np.int64), minlength=16)
                assert float(((counts - CATEGORIES / 16) ** 2).sum() / (CATEGORIES / 16)) < 60.0


def _read(ran: Ran) -> list[Any]:
    return read_by_curator(ran.run.plan, ran.recorded.views[CURATOR])
