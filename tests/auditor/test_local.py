from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from p2pdp.auditor.context import AuditContext, sensitivity_of
from p2pdp.auditor.local import local_a_priori, local_account
from p2pdp.core.claims import Claim, Refusal
from p2pdp.core.messages import TOKEN
from p2pdp.ledger.records import OWN, RECEIVED, public_message
from p2pdp.mechanisms import gaussian, laplace
from p2pdp.replay.transcript import Transcript, replay
from p2pdp.sim.faults import Crash
from tests.support.gossips import gossip
from tests.support.runs import DELTA, HISTOGRAM, Run, quiet, ring, run_of, walk


def local(run: Run, incomplete: tuple[int, ...] = ()) -> Claim:
    found = claimed(run, run.transcript(), incomplete)
    assert isinstance(found, Claim)
    return found


def claimed(run: Run, transcript: Transcript, incomplete: tuple[int, ...]) -> Claim | Refusal:
    finding = local_account(AuditContext(run.plan, {}, transcript, incomplete, DELTA, ()))
    (found,) = (*finding.claims, *finding.refusals)
    return found


def visits(run: Run) -> Any:
    """How often each user contributed, from public parts of records."""
    counts = np.zeros(run.plan.n)
    for peer, contents in run.contents().items():
        for record in contents.records:
            if record.kind in (RECEIVED, OWN) and public_message(record).type == TOKEN:
                counts[peer] += 1
    return counts


def test_every_contribution_counts_with_its_own_noise() -> None:
    run = quiet(walk(5, 40))
    counts = visits(run)
    assert local(run).mu_max == pytest.approx(math.sqrt(max(counts)) / 2.0, rel=1e-6)
    assert local(run).mu_mean == pytest.approx(np.mean(np.sqrt(counts)) / 2.0, rel=1e-6)
    assert local(run).worst_pair == (int(np.argmax(counts)), "network")


def test_it_is_infinite_where_some_contribution_has_no_noise_of_its_own() -> None:
    found = local(quiet(ring(4, 2)))
    assert found.mu_max == found.epsilon_max == math.inf


def test_shared_noise_is_noise_of_its_own() -> None:
    """Remark 1: sigma at the first step, sigma over root(n - 1) at the others, and once more sigma at the last."""
    n, laps = 4, 2
    assert local(quiet(ring(n, laps, "share = true\n"))).mu_max == pytest.approx(
        math.sqrt(laps * (n - 1)) / 2, rel=1e-6
    )


def test_a_ring_of_two_adds_the_closing_draw_to_the_last_contribution() -> None:
    found = quiet(ring(2, 1)).transcript().own_noise
    assert [len(drawn) for user in (0, 1) for drawn in found[user]] == [1, 2]


@pytest.mark.parametrize("dimensions", [1, 3])
def test_laplace_noise_adds_its_epsilons(dimensions: int, tmp_path: Any) -> None:
    rows = "\n".join([",".join("abc"[:dimensions]), *[",".join(["0.5"] * dimensions)] * 4]) + "\n"
    (tmp_path / "rows.csv").write_text(rows)
    data = f'[data]\nkind = "csv"\npath = "{tmp_path / "rows.csv"}"\nclip = [0.0, 1.0]\n'
    run = run_of(walk(4, 20, data=data, noise='[noise]\nmechanism = "laplace"\nepsilon = 0.5\n'))
    found = local(run)
    assert found.epsilon_max == pytest.approx(0.5 * max(visits(run)), rel=1e-6)
    assert found.epsilon_mean == pytest.approx(0.5 * np.mean(visits(run)), rel=1e-6)
    assert found.mu_max is None
    assert found.mu_mean is None


@pytest.mark.parametrize("text", [walk(4, 20, **HISTOGRAM), ring(4, 3, **HISTOGRAM)])
def test_randomized_reports_add_theirs(text: str) -> None:
    run = quiet(text)
    assert local(run).epsilon_max == pytest.approx(1.0 * max(visits(run)), rel=1e-9)


def test_without_noise_it_is_infinite() -> None:
    for parts in ({}, {"protocol": HISTOGRAM["protocol"], "data": HISTOGRAM["data"]}):
        found = local(quiet(walk(3, 12, noise='[noise]\nmechanism = "none"\n', **parts)))
        assert found.epsilon_max == found.mu_max == math.inf


def test_who_never_contributed_has_leaked_nothing() -> None:
    run = quiet(walk(6, 2))
    found = local(run)
    assert found.mu_mean == pytest.approx(np.mean(np.sqrt(visits(run))) / 2.0, rel=1e-6)


def test_a_ledger_that_is_absent_is_named() -> None:
    run = quiet(walk(4, 12))
    views = {peer: contents for peer, contents in run.contents().items() if peer != 2}
    found = claimed(run, replay(run.plan, views), (2,))
    assert isinstance(found, Refusal)
    assert "user 2" in found.reason


def test_contributions_beyond_the_end_of_a_ledger_count_too() -> None:
    """Cut anywhere, the ledger of somebody who is out does not make less of what it contributed."""
    run = run_of(walk(3, 30, seed=5), Crash(peer=2, at_record=30, down_s=None))
    contents = run.contents()
    whole = local(run, (2,)).mu_max
    assert whole is not None
    records = contents[2].records
    tokens = [at for at, one in enumerate(records) if one.kind in (RECEIVED, OWN) and public_message(one).type == TOKEN]
    assert len(tokens) > 2
    for kept in range(1, len(records)):
        views = contents | {2: replace(contents[2], records=records[:kept])}
        transcript = replay(run.plan, views)
        made = sum(len(own) for own in transcript.own_noise[2])
        assert made >= len(tokens) - 1, "the last may have reached nobody"
        found = claimed(run, transcript, (2,))
        assert isinstance(found, Claim)
        assert any("user 2" in text for text in found.assumptions)


def test_what_cannot_be_told_is_not_claimed() -> None:
    run = quiet(walk(4, 12))
    transcript = run.transcript()
    transcript.unknown.add(3)
    assert isinstance(claimed(run, transcript, (3,)), Refusal)


@pytest.mark.parametrize("times", [1, 4])
def test_gaussian_contributions_compose(times: int) -> None:
    run = run_of(gossip(3, "ring", "rounds = 1")).plan
    (claim,) = local_a_priori(run, DELTA, times).claims
    mu = math.sqrt(times) * sensitivity_of(run) / run.plan.noise.scale
    assert (claim.observer, claim.conditioning, claim.bound) == ("network", "a-priori", True)
    assert claim.mu_max == pytest.approx(mu)
    assert claim.epsilon_max == pytest.approx(gaussian.epsilon_of(DELTA, mu))


def test_what_is_looked_up_once_is_not_looked_up_for_each_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """`own_noise` sorts all users, so asking for it user by user would take n^2 steps."""
    asked, whole = list[Any](), Transcript.own_noise
    monkeypatch.setattr(Transcript, "own_noise", property(lambda one: asked.append(one) or whole.fget(one)))
    counts = []
    for n in (3, 30):
        asked.clear()
        local_a_priori(run_of(gossip(n, "ring", "rounds = 1")).plan, DELTA, 1)
        counts.append(len(asked))
    assert counts[0] == counts[1] > 0


def test_laplace_contributions_add_up() -> None:
    run = run_of(gossip(3, "ring", "rounds = 1", noise='mechanism = "laplace"\nsigma = 2.0')).plan
    (claim,) = local_a_priori(run, DELTA, 3).claims
    assert claim.epsilon_max == pytest.approx(3.0 * laplace.epsilon_of(math.sqrt(2.0), 1.0), rel=1e-6)


def test_no_noise_promises_nothing() -> None:
    run = run_of(gossip(3, "ring", "rounds = 1", noise='mechanism = "none"')).plan
    (claim,) = local_a_priori(run, DELTA, 1).claims
    assert claim.epsilon_max == math.inf
