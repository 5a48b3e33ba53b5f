from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import p2pdp
from p2pdp.core.errors import Refused, UsageError, VerificationFailed
from p2pdp.files.data import load_data
from p2pdp.files.spec import parse_spec
from p2pdp.runs.attack import attack
from tests.support.gossips import gossip
from tests.support.small import ALL, BARE, COMPLETE, HISTOGRAM, RING, recorded

OPEN = RING.replace("nodes = 4", "nodes = 5").replace("sigma = 2.0", "sigma = 2.0\nclosing = false")


def test_user_3_reads_user_4_of_a_ring_without_closing_noise(tmp_path: Path) -> None:
    place = recorded(tmp_path, OPEN)
    (target,) = attack(place, 3).targets
    truth = float(load_data(parse_spec(OPEN, None), 5).user(4).rows[0])
    assert target["user"] == 4
    assert target["estimate"] == pytest.approx(truth, abs=1e-5)
    assert target["error"] == 0.0
    assert target["noised_value_error_in_sigma"] == 0.0


@pytest.mark.parametrize("name", ALL)
def test_what_is_read_is_the_noised_value(name: str, tmp_path: Path) -> None:
    place = recorded(tmp_path, ALL[name])
    targets = [target for user in range(3) for target in attack(place, user).targets]
    for target in targets:
        assert np.shape(target["estimate"]) == np.shape(target["error"])
        assert target["noised_value_error_in_sigma"] == (
            None if name in ("bare", "histogram", "ring_histogram") else 0.0
        )
    if name == "bare":
        assert targets
        assert all(target["error"] == 0.0 for target in targets)
    if name == "complete":
        assert any(target["error"] != 0.0 for target in targets)


def test_without_the_targets_ledgers_nothing_is_scored_and_nothing_else_changes(tmp_path: Path) -> None:
    place = recorded(tmp_path, COMPLETE)
    for observer in range(5):
        before = attack(place, observer).targets
        other = tmp_path / f"other{observer}"
        shutil.copytree(place, other)
        for user in range(5):
            if user != observer:
                shutil.rmtree(other / "nodes" / f"{user:04d}")
        after = attack(other, observer).targets
        assert [one["estimate"] for one in after] == [one["estimate"] for one in before]
        assert all(one["error"] is one["noised_value_error_in_sigma"] is None for one in after)


def test_a_target_is_looked_up(tmp_path: Path) -> None:
    place = recorded(tmp_path, OPEN)
    assert [one["user"] for one in attack(place, 3, 4).targets] == [4]
    assert attack(place, 3, 1).targets == [
        {"user": 1, "estimate": None, "error": None, "noised_value_error_in_sigma": None}
    ]


def test_wrong_users_and_views_without_values_are_refused(tmp_path: Path) -> None:
    place = recorded(tmp_path, HISTOGRAM)
    for terms in ((5, None), (-1, None), (0, 5), (1, 1)):
        with pytest.raises(UsageError, match="--"):
            attack(place, *terms)
    file = tmp_path / "skeletons"
    p2pdp.export(place, file)
    with pytest.raises(UsageError, match="skeleton holds no values"):
        attack(file, 0)


def test_an_altered_view_is_not_believed(tmp_path: Path) -> None:
    place = recorded(tmp_path, BARE)
    ledger = place / "nodes" / "0000" / "view.ledger"
    data = bytearray(ledger.read_bytes())
    data[len(data) // 2] ^= 1
    ledger.write_bytes(data)
    with pytest.raises(VerificationFailed, match="node 0"):
        attack(place, 0)


@pytest.mark.parametrize("terms", ["rounds = 4", "rounds = 4\nmessage_sigma = 0.2"])
def test_on_a_ring_of_gossip_the_opposite_node_is_read_unless_messages_are_noised(terms: str, tmp_path: Path) -> None:
    place = recorded(tmp_path, gossip(8, "ring", terms))
    (target,) = attack(place, 0, 4).targets
    if "message_sigma" in terms:
        assert target["estimate"] is target["noised_value_error_in_sigma"] is None
        near = attack(place, 0).targets
        assert [one["user"] for one in near] == [1, 7]
        assert all(0.0 < abs(one["noised_value_error_in_sigma"]) < 0.7 for one in near), "as far off as their noise"
    else:
        assert abs(target["noised_value_error_in_sigma"]) < 1e-3
        assert abs(target["error"]) > 1e-3, "the noise is what is left"


def test_a_public_graph_is_that_of_the_ledgers_and_no_file_outside_is_opened(tmp_path: Path) -> None:
    edges = tmp_path / "edges.txt"
    edges.write_text("".join(f"{user} {(user + 1) % 8}\n" for user in range(8)))
    text = gossip(8, "file", "rounds = 4", extra=f"path = '{edges}'")
    place = recorded(tmp_path, text)
    (target,) = attack(place, 0, 4).targets
    assert abs(target["noised_value_error_in_sigma"]) < 1e-3
    edges.unlink()
    assert attack(place, 0, 4).targets == [target], "the ledgers tell it"
    shutil.rmtree(place / "nodes" / "0007")
    edges.write_text("0 1\n")
    with pytest.raises(VerificationFailed, match="leads out"):
        attack(place, 0, 4)


def test_a_graph_from_a_file_that_is_not_public_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "edges.txt").write_text("".join(f"{user} {(user + 1) % 8}\n" for user in range(8)))
    terms = f"path = '{tmp_path / 'edges.txt'}'\npublic = false"
    with pytest.raises(Refused, match="not public"):
        attack(recorded(tmp_path, gossip(8, "file", "rounds = 4", extra=terms)), 0)


@pytest.mark.parametrize("terms", ["", "\nmessage_sigma = 0.2"])
def test_the_middle_of_a_star_reads_whom_it_meets_in_pairs(terms: str, tmp_path: Path) -> None:
    place = recorded(tmp_path, gossip(5, "star", f"activations = 30{terms}", protocol="randomized"))
    targets = attack(place, 0).targets
    assert [one["user"] for one in targets] == [1, 2, 3, 4]
    errors = [abs(one["noised_value_error_in_sigma"]) for one in targets]
    assert all(0.0 < error < 0.7 for error in errors) if terms else max(errors) < 1e-3
