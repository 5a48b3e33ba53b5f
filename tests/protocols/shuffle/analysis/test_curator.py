from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import p2pdp
from p2pdp.core.errors import Refused, UsageError
from p2pdp.runs.attack import attack
from tests.support.shuffle_specs import shuffle
from tests.support.small import RING, recorded

PATH = shuffle(3, 'kind = "path"', terms="rounds = 1")
REALS = (
    PATH.replace('"randomized_response"\nepsilon = 3.0', '"gaussian"\nsigma = 0.5')
    .replace('"categories"', '"uniform"\nclip = [0.0, 1.0]')
    .replace('"histogram"\ncategories = 3', '"mean"')
)
KEYS = {"user", "estimate", "error", "noised_value_error_in_sigma", "report_probability", "report_found"}


def test_whoever_is_known_for_certain_is_read_as_it_was_noised(tmp_path: Path) -> None:
    """After one round on a path the middle's report is the one that an end hands in."""
    found = attack(recorded(tmp_path, REALS), "curator")
    assert found.to_json()["observer"] == "curator"
    assert [target["user"] for target in found.targets] == [0, 1, 2]
    assert all(set(target) == KEYS for target in found.targets)
    middle = found.targets[1]
    assert middle["report_probability"] == pytest.approx(1.0)
    assert middle["report_found"] is True
    assert middle["noised_value_error_in_sigma"] == pytest.approx(0.0, abs=1e-9)
    assert 0.0 < abs(middle["error"]) < 3.0
    assert attack(tmp_path / "run", "curator", 1).targets == [middle]


def test_of_categories_the_error_is_a_vectors(tmp_path: Path) -> None:
    for target in attack(recorded(tmp_path, PATH), "curator").targets:
        assert np.shape(target["estimate"]) == np.shape(target["error"]) == (3,)
        assert target["noised_value_error_in_sigma"] is None
        assert sum(target["error"]) == pytest.approx(0.0, abs=1e-9)


def test_without_the_users_ledgers_nothing_is_scored(tmp_path: Path) -> None:
    place = recorded(tmp_path, REALS)
    before = attack(place, "curator").targets
    shutil.rmtree(place / "nodes")
    after = attack(place, "curator").targets
    assert [one["estimate"] for one in after] == [one["estimate"] for one in before]
    for one in after:
        assert one["error"] is one["noised_value_error_in_sigma"] is one["report_found"] is None


def test_a_relay_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"^a user of network shuffling holds sealed reports only"):
        attack(recorded(tmp_path, PATH), 0)


def test_elsewhere_the_curator_has_what_is_published(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"of walk\.sum it gets only what is published"):
        attack(recorded(tmp_path, RING), "curator")


def test_a_skeleton_tells_nothing(tmp_path: Path) -> None:
    place = recorded(tmp_path, PATH)
    p2pdp.export(place, tmp_path / "skeletons")
    with pytest.raises(UsageError, match=r"view\.ledger of the curator is not there"):
        attack(tmp_path / "skeletons", "curator")
    with pytest.raises(UsageError, match="--observer"):
        attack(place, "bootstrap")


def test_a_graph_from_a_file_has_to_be_there_and_the_same(tmp_path: Path) -> None:
    edges = tmp_path / "edges.txt"
    edges.write_text("0 1\n1 2\n2 3\n")
    text = shuffle(4, f"kind = \"file\"\npath = '{edges}'\npublic = false", terms="rounds = 2\nstay = 0.1")
    place = recorded(tmp_path, text)
    assert len(attack(place, "curator").targets) == 4
    edges.write_text("0 1\n1 2\n2 3\n3 0\n")
    with pytest.raises(Refused, match="not the one that this run took place on"):
        attack(place, "curator")
    edges.unlink()
    with pytest.raises(Refused, match="not where the spec says"):
        attack(place, "curator")
