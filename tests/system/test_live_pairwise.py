"""Live pairwise sums: users killed for good at any moment, down to the least number of survivors, and below it."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random

import networkx as nx
import pytest

import p2pdp
from p2pdp.auditor.context import sensitivity_of
from p2pdp.auditor.verify import COMPLETE
from p2pdp.files.folder import read_evidence
from p2pdp.runs.audit import audit, verify
from tests.support.launched import ROLES, Launched, wait_for
from tests.support.mosquitto import mosquitto
from tests.support.pairwise_folders import Judged, judged, told_to
from tests.support.standing import standing

N, LEAST = 12, 8


def text(masks: str = 'masks = "uniform"', noise: str = "") -> str:
    return (
        f'[run]\nprotocol = "pairwise.sum"\nnodes = {N}\nseed = 8\npatience_s = 3.0\nenrol_timeout_s = 8.0\n'
        f'[graph]\nkind = "regular"\ndegree = 6\n[pairwise]\n{masks}\nsurvivors_min = {LEAST}\n'
        f'[noise]\nmechanism = "gaussian"\nsigma = 1.0\n{noise}\n[data]\nkind = "uniform"\nclip = [0.0, 1.0]\n'
        '[task]\nkind = "mean"\n[privacy]\ndelta = 1e-5\ncolluders_max = 1\n'
    )


def recomputed(folder: Path, found: Judged) -> float:
    """What the curator can tell of somebody at most: of each connected part of the survivors it learns the sum."""
    evidence = read_evidence(folder)
    run = evidence.run
    graph = nx.Graph()
    graph.add_nodes_from(found.survivors)
    for user in found.survivors:
        near = evidence.contents(user).records[0].body.neighbours
        graph.add_edges_from((user, peer) for peer in near if peer in found.survivors)
    smallest = min(map(len, nx.connected_components(graph)))
    return sensitivity_of(run) / (run.plan.noise.scale * math.sqrt(smallest))


@pytest.mark.parametrize("seed", range(3))
def test_a_third_is_killed_for_good_at_any_moment(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - nothing is kept secret with it
    gone = chance.sample(range(N), N - LEAST)
    with Launched(tmp_path, text(), mortal=gone) as run:
        run.wait_for_everybody()
        for user in gone:
            run.wait_for_progress(chance.choice([0, 0, 500, 3000]))
            run.kill(user)
        result = run.completes()
    found = judged(run.folder)
    assert result["survivors"] == found.survivors
    assert set(range(N)) - set(gone) <= set(found.survivors)
    assert verify(run.folder).problems == []
    claims = audit(run.folder, None, None, allow_missing=False).claims
    (curator,) = [one for one in claims if (one.observer, one.method) == ("curator", "exact")]
    assert curator.mu_max == pytest.approx(recomputed(run.folder, found), rel=1e-9)


def test_below_the_least_number_the_run_ends_with_the_reason_and_reveals_no_part(tmp_path: Path) -> None:
    """Each that is gone dies at its second frame, so before it has six neighbours' parts and its value may count."""
    gone = list(range(N - LEAST + 1))
    with Launched(tmp_path, text(), mortal=gone, die=[str(tmp_path), 1, *gone]) as run:
        assert run.end() == 3
        assert str(LEAST) in run.error
    assert all(standing(tmp_path, user, 0).exists() for user in gone)
    found = judged(run.folder)
    assert found.published is None
    assert "seeds" not in told_to(run.folder)


def test_users_who_come_back_count_and_nothing_is_revealed_twice(tmp_path: Path) -> None:
    chance = Random(7)  # noqa: S311
    with Launched(tmp_path, text()) as run:
        run.wait_for_everybody()
        for _ in range(6):
            run.kill(chance.randrange(N))
            run.wait_for_progress(200)
        result = run.completes()
    found = judged(run.folder)
    assert (result["missing"], found.survivors) == ([], list(range(N)))


@pytest.mark.parametrize("seed", range(2))
def test_users_bootstrap_and_curator_are_killed_and_come_back(tmp_path: Path, seed: int) -> None:
    """Each when the ledgers have come to a size that chance decides, of some 30,000 bytes in all."""
    chance = Random(seed)  # noqa: S311
    who = chance.sample([ROLES, ROLES, *range(N)], 7)
    with Launched(tmp_path, text().replace("patience_s = 3.0", "patience_s = 6.0")) as run:
        run.wait_for_everybody()
        for size, one in zip(sorted(chance.randrange(30_000) for _ in who), who, strict=True):
            wait_for(lambda size=size: not run.running or sum(run.sizes().values()) >= size, "ledgers grow")  # type: ignore[misc]
            run.kill(one)
        result = run.completes()
    assert (result["missing"], judged(run.folder).survivors) == ([], list(range(N)))
    assert verify(run.folder).verified == COMPLETE


@pytest.mark.parametrize("transport", ["memory", "mqtt", "tcp"])
def test_every_transport_on_one_machine_gives_the_exact_sum(tmp_path: Path, transport: str) -> None:
    if transport == "mqtt":
        mosquitto()
    place = tmp_path / "spec.toml"
    place.write_text(text().replace("seed = 8", f'seed = 8\ntransport = "{transport}"'))
    result = p2pdp.run(p2pdp.load_spec(place), out=tmp_path / "run")
    assert result.survivors == judged(tmp_path / "run").survivors == list(range(N))


def test_gaussian_masks_without_settling_leave_pair_noise_of_who_is_gone_in_the_sum(tmp_path: Path) -> None:
    masks = 'masks = "gaussian"\nsettle = "none"'
    with Launched(tmp_path, text(masks, "pair_sigma = 2.0"), mortal=[0]) as run:
        run.wait_for_everybody()
        run.kill(0)
        result = run.completes()
    left = len(result["survivors"])
    assert left in (N - 1, N), "it may have been done when it was killed"
    unsettled = 6 if left < N else 0
    assert result["standard_error"] == pytest.approx(math.sqrt(left + unsettled * 4.0) / left)
