"""Traces of worlds against what their ledgers' own records say of the path."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from p2pdp.auditor.context import AuditContext
from p2pdp.core.claims import Claim, Method
from p2pdp.core.draws import DITHER
from p2pdp.core.messages import TOKEN, TOTAL
from p2pdp.ledger.records import SENT, carries_message, whole_message
from p2pdp.mechanisms import dither, gaussian
from p2pdp.privacy.iteration.path import exposures
from p2pdp.protocols.walk.analysis.iteration import (
    CONTRACTS,
    NO_DITHER,
    Rounding,
    TraceAuditor,
    foreseen,
    iteration_account,
    rounding_of,
    steps_of,
    why_not,
)
from p2pdp.sim.faults import Crash
from tests.support import exact_descent as exact
from tests.support.learners import LINEAR, LOGISTIC, RANGES, learning, prepared
from tests.support.runs import DELTA, Run, quiet, run_of
from tests.support.token_paths import paths
from tests.support.walk_sgd_world import world_of


def by_observer(claims: list[Claim], method: str = Method.ITERATION) -> dict[str, Claim]:
    return {claim.observer: claim for claim in claims if claim.method == method}


def test_every_observer_has_its_claim_and_none_is_above_the_local_ceiling() -> None:
    audit = quiet(learning(6, 80)).audit(colluders=[1, 2])
    found = by_observer(audit.claims)
    assert set(found) == {"node", "coalition", "curator", "curator+coalition", "public", "network"}
    local = by_observer(audit.claims, "local")["network"]
    assert local.mu_max is not None
    for claim in found.values():
        assert claim.bound
        assert claim.conditioning == "public"
        assert CONTRACTS in claim.assumptions
        assert claim.mu_max is not None
        assert claim.mu_max <= local.mu_max * (1 + 1e-9)
        assert claim.epsilon_max == pytest.approx(gaussian.epsilon_of(1e-5, claim.mu_max))
    assert found["curator"].mu_max < found["node"].mu_max  # type: ignore[operator]
    assert audit.mu is not None
    assert audit.mu.shape == (6, 6)


def test_mu_is_sensitivity_over_sigma_where_a_step_stands_alone() -> None:
    audit = quiet(learning(2, 1)).audit()
    node = by_observer(audit.claims)["node"]
    assert node.mu_max == pytest.approx(2 * 1.0 / 0.8, rel=1e-6)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"task": LOGISTIC.replace("0.2", "9.0")}, "above 2/smoothness"),
        ({"data": ""}, "features need one"),
        ({"task": LOGISTIC.replace("0.2", "0.2\nregularization = 9.5")}, "above 2/smoothness"),
    ],
)
def test_where_a_condition_fails_it_refuses_and_the_local_ceiling_stands(change: dict[str, str], words: str) -> None:
    text = learning(4, 20, **change)  # type: ignore[arg-type]
    audit = quiet(text).audit()
    assert by_observer(audit.claims) == {}
    assert [claim.method for claim in audit.claims if claim.bound] == ["local"]
    assert {refusal.observer for refusal in audit.refusals} >= {"node", "curator", "public"}
    assert all(words in refusal.reason for refusal in audit.refusals if refusal.method == Method.ITERATION)
    assert words in (why_not(prepared(text)[0].plan) or "")


def test_without_noise_everything_is_infinite_and_said_so() -> None:
    claims = quiet(learning(3, 9, sigma=None)).audit().claims
    assert {claim.epsilon_max for claim in claims} == {math.inf}


def test_a_user_who_is_put_out_does_not_stop_the_account() -> None:
    """The walk goes round it; its own view is not at hand."""
    run = run_of(learning(5, 60, data=RANGES), Crash(2, at_record=30, down_s=None))
    assert run.world.out == [2]
    from tests.support.runs import judged

    audit = judged(run.evidence, lenient=True)
    assert "node" in by_observer(audit.claims)
    assert any(refusal.reason.startswith("user 2") for refusal in audit.refusals)


SPECS = {
    "complete": learning(5, 40),
    "tokens": learning(4, 20, tokens=3),
    "grid": learning(6, 40, kind="grid"),
    "schedule": learning(4, 30, task='kind = "logistic_regression"\nclip = 1.0\nrate = 0.5\nschedule = "inverse_sqrt"'),
    "ring": learning(4, kind="ring", order='order = "ring"\nlaps = 3'),
}


@pytest.mark.parametrize("name", SPECS)
def test_leaks_are_those_of_the_gaps_between_an_observers_visits(name: str) -> None:
    run = quiet(SPECS[name])
    plan, path = run.plan.plan, paths(run)
    auditor = TraceAuditor(run.transcript(), plan)
    observers: list[Any] = [*range(run.plan.n), None]
    for observer in observers:
        gap, user, rate, number = [], [], [], 0
        for walk in path:
            for step, who in enumerate(walk):
                if who == observer:
                    number += 1
                else:
                    gap.append(number)
                    user.append(who)
                    rate.append(plan.rate_at(step + 1))
            number += 1
        expected = exposures(np.array(gap), np.array(user), np.array(rate), plan.n) / plan.noise.scale**2
        told = (auditor.nodes([observer]) if observer is not None else auditor.curator()).values
        assert told is not None
        if observer is not None:
            assert np.isnan(told[observer])
            expected[observer] = np.nan
        assert told == pytest.approx(expected, rel=1e-9, nan_ok=True)
    assert auditor.public().values == pytest.approx(auditor.curator().values, rel=1e-12)


def test_pooled_views_tell_no_less_than_one_of_them_and_the_network_most() -> None:
    run = quiet(SPECS["complete"])
    auditor = TraceAuditor(run.transcript(), run.plan.plan)
    one, two, all_of_it = (auditor.nodes([1]).values, auditor.nodes([1, 3]).values, auditor.network().values)
    assert one is not None
    assert two is not None
    assert all_of_it is not None
    others = [0, 2, 4]
    assert np.all(one[others] <= two[others] * (1 + 1e-12))
    assert np.all(two[others] <= all_of_it[others] * (1 + 1e-12))


def test_without_noise_whoever_contributed_is_told_wholly() -> None:
    run = quiet(learning(3, 30, sigma=None))
    found = TraceAuditor(run.transcript(), run.plan.plan).curator().values
    assert found is not None
    assert np.all(np.isinf(found))


def test_what_was_published_must_be_known() -> None:
    run = quiet(SPECS["complete"])
    transcript = run.transcript()
    transcript.published = None
    auditor = TraceAuditor(transcript, run.plan.plan)
    assert auditor.public().values is None
    assert auditor.nodes([0]).values is None


TEXTS = {
    "complete": learning(5, 30),
    "tokens": learning(4, 20, tokens=3),
    "ring": learning(4, kind="ring", order='order = "ring"\nlaps = 3'),
    "linear": learning(
        4, 30, task=f"{LINEAR}\nregularization = 0.2\nradius = 0.4", target='target = "effect"\ntarget_range = [-4, 4]'
    ),
}


def context_of(run: Run, colluders: tuple[int, ...] = ()) -> AuditContext:
    return AuditContext(run.plan, run.contents(), run.transcript(), (), DELTA, colluders)


def nu_of(context: AuditContext) -> float:
    found = rounding_of(context)
    assert isinstance(found, Rounding)
    return found.nu


@pytest.mark.parametrize("name", TEXTS)
def test_nu_is_the_sum_over_all_steps_and_what_was_foreseen(name: str) -> None:
    run = quiet(TEXTS[name])
    plan = run.plan.plan
    one = steps_of(run.plan)
    squares = plan.length * ((one.message / (plan.dither.scale * plan.fine)) ** 2 + (one.gradient / one.sigma) ** 2)
    found = nu_of(context_of(run))
    assert found == pytest.approx(math.sqrt(squares))
    assert found == pytest.approx(foreseen(run.plan).nu)
    size = math.sqrt(plan.length * plan.descent.dimension) * 2.0**-22
    assert size < found < 2.5 * size


def test_scales_are_those_of_the_records() -> None:
    context = context_of(quiet(TEXTS["complete"]))
    before, draws = nu_of(context), context.transcript.draws
    for user in draws:
        draws[user] = [one._replace(scale=one.scale * (1e-3 if one.name == DITHER else 1.0)) for one in draws[user]]
    assert nu_of(context) == pytest.approx(1000.0 * before, rel=1e-3)
    draws[2] = [one for one in draws[2] if one.name != DITHER]
    assert rounding_of(context) == NO_DITHER.format(2)
    found = iteration_account(context)
    assert not found.claims
    assert {refusal.observer for refusal in found.refusals} == {"node", "curator", "public"}


def test_claims_add_it_up_to_what_all_noised_gradients_tell() -> None:
    context = context_of(quiet(learning(6, 80)))
    found, rounding = iteration_account(context), rounding_of(context)
    assert isinstance(rounding, Rounding)
    assert found.mu is not None
    told = np.minimum(found.mu + 2.0 * rounding.nu, rounding.ceilings[:, None])
    node = next(claim for claim in found.claims if claim.observer == "node")
    assert node.mu_max == pytest.approx(np.nanmax(told), rel=1e-11)
    assert node.mu_max > np.nanmax(found.mu)
    times = Counter(source for source, _ in context.transcript.models)
    ratio = context.sensitivity / context.run.plan.noise.scale
    assert rounding.ceilings == pytest.approx([ratio * math.sqrt(times[user]) for user in range(6)])


def test_who_is_gone_counts_with_what_it_took() -> None:
    run = run_of(learning(5, 60, data=RANGES), Crash(2, at_record=30, down_s=None))
    assert run.world.out == [2]
    context = replace(context_of(run), incomplete=(2,))
    one, plan = steps_of(run.plan), run.plan.plan
    taken = sum(1 for drawn in context.transcript.draws.values() for one in drawn if one.name != DITHER)
    assert taken >= plan.length
    assert nu_of(context) == pytest.approx(math.sqrt(taken * one.square(plan.dither.scale * plan.fine)))
    context.transcript.unknown.add(2)
    found = rounding_of(context)
    assert isinstance(found, Rounding)
    assert np.isinf(found.ceilings).all()
    assert found.nu > math.sqrt(2.0 * plan.length * one.square(plan.dither.scale * plan.fine)) * 0.99


def test_one_model_leaves_however_often_it_is_sent() -> None:
    """Somebody who is gone round gets the very bytes that were lost; nobody sends two dithers of one step."""
    run = run_of(learning(5, 60, data=RANGES), Crash(2, at_record=30, down_s=None), Crash(1, at_record=50))
    sent: dict[tuple[int, int, int], set[bytes]] = {}
    times = 0
    for user, contents in run.contents().items():
        for record in contents.records:
            if record.kind == SENT and carries_message(record):
                message = whole_message(record)
                if message.type in (TOKEN, TOTAL) and message.fields[1] > 1:
                    sent.setdefault((user, *message.fields), set()).add(message.value.tobytes())
                    times += 1
    assert max(len(models) for models in sent.values()) == 1
    assert times > len(sent), "a model was sent again"


def test_without_noise_there_is_no_dither_and_nothing_to_bound() -> None:
    run = quiet(learning(3, 9, sigma=None))
    assert run.plan.plan.dither is None
    assert nu_of(context_of(run)) == foreseen(run.plan).nu == 0.0


def test_code_of_the_callers_own_is_named() -> None:
    run = quiet(TEXTS["complete"]).plan
    own = replace(run, spec=replace(run.spec, task=replace(run.spec.task, kind="own")))
    (said,) = set(foreseen(own).assumptions[1:])
    assert f"{steps_of(own).floats:.1e}" in said
    assert foreseen(own).nu > foreseen(run).nu


@pytest.mark.parametrize("name", ["complete", "linear"])
def test_every_message_of_a_run_is_within_its_bound_in_exact_numbers(name: str, monkeypatch: Any) -> None:
    """From each message that came, half a step to either side, and what was drawn: gradient, step, projection."""
    unfolded, numbers = dither.unfolded, np.random.default_rng(5)
    dithers: list[Any] = []

    def kept(seed: Any, counter: int, count: int) -> Any:
        block = unfolded(seed, counter, count)
        dithers.append(block.reshape(-1, 3)[::-1])
        return block

    monkeypatch.setattr(dither, "unfolded", kept)
    run, data = prepared(TEXTS[name])
    world = world_of(run, data)
    plan, bound = run.plan, steps_of(run)
    of_user: dict[int, list[Any]] = {}
    for visit in world.visits:  # blocks come in the order of the users' first visits
        if visit.user not in of_user:
            of_user[visit.user] = list(dithers[len(of_user)])
    drawn = {user: [one for kind, one in draws.drawn if kind.name != DITHER] for user, draws in world.draws.items()}
    made = dict.fromkeys(range(run.n), 0)
    models = [*(visit.before for visit in world.visits[1:]), world.totals[0]]
    for visit, left in zip(world.visits, models, strict=True):
        number, made[visit.user] = made[visit.user], made[visit.user] + 1
        clean = left - of_user[visit.user][number] * plan.fine
        inputs: Any = run.protocol.inputs(plan, data.user(visit.user))[0]
        half = numbers.choice([-1.0, 1.0], 3) * plan.fine / 2.0 * (visit.step > 1)
        came = [part + exact.Fraction(more) for part, more in zip(exact.exactly(visit.before), half, strict=True)]
        snapped = exact.exactly(inputs.gradient(visit.before, number))
        rows = data.user(visit.user)
        ideal = exact.gradient(run.spec.task.kind, came, rows.features, rows.targets, plan.descent.clip)
        assert exact.apart(snapped, ideal) <= bound.gradient
        noise = exact.exactly(drawn[visit.user][number] * plan.descent.step)
        noised = [one + other for one, other in zip(snapped, noise, strict=True)]
        to = exact.moved(came, noised, plan.rate, plan.descent.regularization, plan.descent.radius)
        assert exact.apart(exact.exactly(clean), to) <= bound.message
