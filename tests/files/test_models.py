from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2pdp
from p2pdp.core.errors import UsageError
from p2pdp.files.models import STATE_FILE, load_state_dict
from tests.support.torches import small_network, torch_here

torch_here()


def saved(place: Path, module: Any, users: list[int] | None = None) -> Path:
    arrays = {name: one.detach().numpy().astype(float) + 1.0 for name, one in module.named_parameters()}
    if users is not None:
        arrays = {name: np.stack([one + user for user in users]) for name, one in arrays.items()}
        arrays["users"] = np.array(users)
    np.savez(place / STATE_FILE, allow_pickle=False, **arrays)
    return place


def test_a_module_gets_the_numbers_by_their_names(tmp_path: Path) -> None:
    before, module = small_network(), small_network()
    assert p2pdp.load_state_dict(saved(tmp_path, module), module) is module
    for name, one in module.named_parameters():
        assert torch_here().allclose(one, dict(before.named_parameters())[name] + 1.0)


def test_of_models_of_users_one_is_chosen(tmp_path: Path) -> None:
    before, module = small_network(), small_network()
    place = saved(tmp_path, module, [0, 4])
    load_state_dict(place, module, user=4)
    assert torch_here().allclose(module[0].bias, before[0].bias + 5.0)
    for user, words in ((None, "name one"), (1, "no model of user 1")):
        with pytest.raises(UsageError, match=words):
            load_state_dict(place, module, user=user)


def array() -> bytes:
    """One array and not several, and one whose head is cut."""
    file = io.BytesIO()
    np.save(file, np.zeros(3))
    return file.getvalue()


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    place = saved(tmp_path, small_network())
    with pytest.raises(UsageError, match="leave user out"):
        load_state_dict(place, small_network(), user=0)
    with pytest.raises(UsageError, match=r"parameter 0\.bias"):
        load_state_dict(place, torch_here().nn.Linear(4, 1))
    whole = (place / STATE_FILE).read_bytes()
    for damaged in (
        b"PK",
        whole[:-1],
        array(),
        array()[:40] + b"\n" + array()[41:],
        b"PK\x05\x06" + whole[4:],
        whole[:60] + b"\0" * 60 + whole[120:],
    ):
        (place / STATE_FILE).write_bytes(damaged)
        with pytest.raises(UsageError, match="whole npz"):
            load_state_dict(place, small_network())
    with pytest.raises(UsageError, match=STATE_FILE):
        load_state_dict(tmp_path / "nowhere", small_network())
