from __future__ import annotations

from typing import Any

import pytest

from p2pdp.tasks import torch_models
from p2pdp.tasks.torch_objective import TorchObjective
from tests.support.torches import torch_here

torch_here()


@pytest.mark.parametrize(
    ("make", "columns", "loss", "numbers"),
    [
        (torch_models.digits_network, 64, "cross_entropy", 9_258),
        (torch_models.two_features, 2, "bce", 3),
        (torch_models.ratings, 2, "mse", 4 * (torch_models.USERS + torch_models.ITEMS) + 1),
    ],
)
def test_each_factory_makes_a_module_of_its_size(make: Any, columns: int, loss: str, numbers: int) -> None:
    assert TorchObjective(make(), loss).dimension(columns) == numbers
    assert f"{numbers:,}" in make.__doc__ or numbers < 1000
