"""Pairwise sums across machines: owners join with what they accept, and every node has the survivors' sum."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import p2pdp
from tests.support.across import SHARED, Across
from tests.support.pairwise_world import NUMBERS, pairwise

TARGET = 'mechanism = "gaussian"\nepsilon = 1.0\ndelta = 1e-5'


def test_nobody_hands_in_a_skeleton_and_all_learn_the_same_mean(tmp_path: Path) -> None:
    text = pairwise(4, noise='mechanism = "gaussian"\nsigma = 0.05', data=f'{NUMBERS}\n[task]\nkind = "mean"').replace(
        "seed = 3\n", ""
    )
    with Across(tmp_path, text, 4) as run:
        for number in range(4):
            (tmp_path / f"own{number}.csv").write_text(f"{number / 10}\n")
            config = tmp_path / f"n{number}.toml"
            data = f'kind = "csv"\npath = "own{number}.csv"\n'
            config.write_text(config.read_text().replace('kind = "uniform"\n', data))
        boot = run.bootstrap()
        told = [node.document() for node in run.all_nodes()]
        result = boot.document()
    participants = json.loads((tmp_path / "boot" / "participants.json").read_text())
    for one in (*told, result, participants):
        assert one["estimate"] == result["estimate"] == pytest.approx(0.15, abs=8 * 0.025)
        assert one["standard_error"] == pytest.approx(0.025)
    assert all(one["survivors"] == [0, 1, 2, 3] for one in (*told, result))


def test_owners_learn_the_sum_of_their_own_values(tmp_path: Path) -> None:
    text = pairwise(5, noise=TARGET, privacy="colluders_max = 1").replace("seed = 3\n", "")
    with Across(tmp_path, text, 5) as run:
        for number in range(5):
            (tmp_path / f"own{number}.csv").write_text(f"{number / 10}\n")
            config = tmp_path / f"n{number}.toml"
            data = f'kind = "csv"\npath = "own{number}.csv"\n[accept]\nsigma_min = 1.0\n'
            config.write_text(config.read_text().replace('kind = "uniform"\n', data))
        boot = run.bootstrap()
        told = [node.document() for node in run.all_nodes(*SHARED)]
        result = boot.document()
    assert {one["estimate"] for one in told} == {result["estimate"]}
    assert result["survivors"] == [0, 1, 2, 3, 4]
    assert abs(result["estimate"] - 1.0) <= 8 * result["standard_error"]
    found = p2pdp.audit(tmp_path / "boot")
    assert ("curator", "exact") in {(claim.observer, claim.method) for claim in found.claims}
    assert found.verified == "complete"
