"""Claims about steps over rows that nodes draw: read from what is recorded, and never below what an attack proves."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution

from p2pdp.auditor.headline import verdict_of
from p2pdp.auditor.sampled import HIDDEN_ROWS, share_of, sigma_within, steps_of
from p2pdp.core.claims import Claim, Observer, Relation
from p2pdp.core.draws import ROWS, Mechanism
from p2pdp.ledger.records import DRAWN, read, to_skeleton
from p2pdp.mechanisms.rows import mechanism_of
from p2pdp.mechanisms.sampler import SeededSampler
from p2pdp.privacy.subsampled import Steps, epsilon_of
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.report.documents import claim_document
from p2pdp.sim.faults import Crash
from p2pdp.tasks.descent import GradientInputs
from p2pdp.tasks.examples import examples_of
from tests.support.likelihood import epsilon_lower_end
from tests.support.row_runs import GOSSIP, PAIRS, WALK
from tests.support.runs import DELTA, Run, Written, judged, quiet, run_of


def claims_of(run: Run, relation: Relation) -> dict[tuple[str, str], Claim]:
    found = {(claim.observer, claim.method): claim for claim in run.audit().claims if claim.relation is relation}
    assert all(claim.unit == "record" for claim in found.values())
    return found


def told(claim: Claim) -> float:
    assert claim.epsilon_max is not None
    return claim.epsilon_max


def independently(share: float, sigma: float, times: int) -> float:
    one = privacy_loss_distribution.from_gaussian_mechanism(
        sigma, sampling_prob=share, value_discretization_interval=1e-4
    )
    return float(one.self_compose(times).get_epsilon_for_delta(DELTA))


@pytest.mark.parametrize(("text", "times"), [(GOSSIP, 6), (WALK, None)])
def test_the_ceiling_is_that_of_the_recorded_steps_and_shares(text: str, times: int | None) -> None:
    """A share of a third, and a part of a quarter under noise of 0.3."""
    run = quiet(text)
    local = claims_of(run, Relation.ZERO_OUT)[Observer.NETWORK, "local"]
    assert HIDDEN_ROWS in local.assumptions
    made = {user: len(own) for user, own in run.transcript().own_noise.items()}
    assert times is None or set(made.values()) == {times}
    assert told(local) == pytest.approx(independently(1.0 / 3.0, 0.3 * 4.0, max(made.values())), rel=2e-4)
    assert told(claims_of(run, Relation.REPLACE)[Observer.NETWORK, "local"]) > told(local)


def test_with_noise_of_pairs_whoever_sees_all_is_told_what_its_leak_tells() -> None:
    """Ring of 5, own noise 0.3 and pair noise 0.6: the leak is an entry of the inverse covariance."""
    found = claims_of(quiet(PAIRS), Relation.ZERO_OUT)
    laplacian = 2.0 * np.eye(5) - np.roll(np.eye(5), 1, axis=0) - np.roll(np.eye(5), -1, axis=0)
    leak = np.linalg.inv(np.eye(5) + 4.0 * laplacian)[0, 0]
    everything = independently(1.0 / 3.0, 0.3 * 4.0 / math.sqrt(leak), 6)
    assert told(found[Observer.PUBLIC, "exact"]) == pytest.approx(everything, rel=2e-4)
    without = laplacian.copy()
    for end in (1, 4):  # user 0 knows the draws of its edges
        without[0, end] = without[end, 0] = 0.0
        without[end, end] -= 1.0
        without[0, 0] -= 1.0
    most = max(np.linalg.inv(np.eye(5) + 4.0 * without)[user, user] for user in range(1, 5))
    assert told(found[Observer.NODE, "exact"]) == pytest.approx(
        independently(1.0 / 3.0, 0.3 * 4.0 / math.sqrt(most), 6), rel=2e-4
    )


@pytest.mark.parametrize("text", [GOSSIP, PAIRS, WALK])
def test_the_headline_is_about_a_row_that_is_replaced(text: str) -> None:
    audit = quiet(text).audit()
    headline = verdict_of(audit.claims, audit.refusals, 5, DELTA).headline.claim
    assert headline is not None
    assert headline.relation is Relation.REPLACE
    assert {claim.relation for claim in audit.claims if claim.bound} == set(Relation)
    assert json.loads(json.dumps(claim_document(audit.claims[0])))["relation"] in ("replace", "zero-out")


@pytest.mark.parametrize("text", [GOSSIP, WALK])
def test_claims_move_with_the_share_that_is_recorded(text: str) -> None:
    run = quiet(text)
    user = 1
    own = run.transcript().own_noise[user]
    assert {share_of(recorded) for recorded in own} == {share_of(own[0])}
    assert share_of(own[0]) == pytest.approx(1.0 / 3.0)
    assert [one.name for one in own[0]] == ["gaussian", ROWS]
    (steps,) = steps_of(run.plan, own)
    halved = [tuple(replaced(one) for one in recorded) for recorded in own]
    (fewer,) = steps_of(run.plan, halved)
    assert (fewer.share, fewer.ratio, fewer.times) == (pytest.approx(steps.share / 2.0), steps.ratio, steps.times)


def replaced(mechanism: Mechanism) -> Mechanism:
    return mechanism._replace(scale=mechanism.scale / 2.0) if mechanism.name == ROWS else mechanism


def test_a_node_that_records_another_share_is_found() -> None:
    def lie(written: list[Written]) -> list[Written]:
        def changed(one: Written) -> Written:
            body = list(one.body)
            if one.kind == DRAWN and ROWS in body:
                body[body.index(ROWS) + 1] = 0.01
            return Written(one.kind, tuple(body), one.value)

        return [changed(one) for one in written]

    with pytest.raises(AssertionError, match="not the draw that the protocol makes"):
        judged(quiet(GOSSIP).forged(1, lie))


@pytest.mark.parametrize("text", [GOSSIP, WALK])
def test_a_restart_draws_no_rows_again(text: str) -> None:
    """What reached others before and after a crash follows from one set of draws: the audit replays it, with values."""
    base = quiet(text)
    crashed = run_of(text, Crash(1, 0.05, 0.5), Crash(2, 0.1, 0.4))
    assert {claim.method for claim in crashed.audit().claims} == {claim.method for claim in base.audit().claims}


def test_rows_that_were_drawn_are_in_no_skeleton() -> None:
    for view in quiet(GOSSIP).evidence.views.values():
        for record in read(to_skeleton(view)).records:
            assert record.kind != DRAWN or record.value is None


@pytest.mark.parametrize("relation", list(Relation))
def test_no_attack_on_a_row_proves_more_than_is_claimed(relation: Relation) -> None:
    """The steps of a node's own code, all seen, and the exact likelihood of the mixtures: near the claim, never above.

    Other rows have no features, so their gradients are 0. The row's own gradient is clipped at every model.
    """
    run: RunPlan = quiet(GOSSIP).plan
    descent = replace(run.plan.descent, clip=0.05)
    count, times, rows, delta = 10_000, 2, 12, 0.05
    sigma, part = 0.00625, 0.05 / 4.0
    features = np.zeros((rows, 3))
    features[4, 0] = 1.0
    targets = np.ones(rows)
    with_ = GradientInputs(descent, examples_of(features, targets, None))
    targets[4] = -1.0
    other = GradientInputs(descent, examples_of(features, targets, None))
    without = GradientInputs(descent, examples_of(np.zeros((rows, 3)), targets, None))
    mechanism, shape = mechanism_of(descent.share(rows), rows)
    share = mechanism.scale

    def scores(inputs: GradientInputs, name: str) -> np.ndarray:
        draws = SeededSampler(5, name).batch(mechanism, shape, count * times)
        model = np.zeros(3)
        seen = np.array([inputs.gradient(model, 0, draw)[0] for draw in draws])
        seen += np.random.default_rng(len(name)).normal(scale=sigma, size=len(seen))
        up, down = (
            np.log1p(share * np.expm1((side * 2.0 * seen * part - part**2) / (2.0 * sigma**2))) for side in (-1, 1)
        )
        ratio = up - (down if relation is Relation.REPLACE else 0.0)  # the gradient of a target of 1 points down
        return np.asarray(ratio.reshape(count, times).sum(axis=1))

    against = other if relation is Relation.REPLACE else without
    worlds = scores(against, "without"), scores(with_, "with one")
    proved = max(epsilon_lower_end(one, two, delta, 5e-7) for one, two in (worlds, worlds[::-1]))
    steps = steps_of(run, [(Mechanism("gaussian", sigma / descent.step), mechanism)] * times)
    claimed = epsilon_of([Steps(share, part / sigma * (1.0 + 1e-6), times)], relation, delta)
    assert steps[0].times == times
    assert 0.4 * claimed < proved <= claimed


def test_a_plan_counts_with_the_user_of_fewest_rows() -> None:
    run = quiet(GOSSIP).plan
    assert run.plan.protection == (run.plan.noise, Mechanism(ROWS, 1.0 / 3.0, 12))
    sigma = sigma_within(run, 6, 2.0, DELTA)
    assert sigma is not None
    text = GOSSIP.replace("sigma = 0.3", f"sigma = {sigma}")
    local = claims_of(quiet(text), Relation.REPLACE)[Observer.NETWORK, "local"]
    assert 1.98 < told(local) <= 2.0
