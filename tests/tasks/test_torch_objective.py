from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import p2pdp
from p2pdp.core.errors import UsageError
from p2pdp.tasks import torch_models
from p2pdp.tasks.examples import Examples, examples_of
from p2pdp.tasks.objectives import Guarantees, start_digest, start_of
from p2pdp.tasks.torch_objective import TorchObjective, arrays_of
from tests.support.sources import TOP
from tests.support.torches import rows_of, small_network, torch_here

torch_here()

LOSSES = ("cross_entropy", "mse", "bce")


def module_for(loss: str) -> Any:
    torch = torch_here()
    return small_network() if loss == "cross_entropy" else torch.nn.Linear(4, 1)


def one_by_one(module: Any, loss: str, examples: Examples) -> np.ndarray[Any, Any]:
    """Autograd's own gradient of each example, flat, in the order of the parameters."""
    torch = torch_here()
    found = []
    for row, target in zip(examples.features, examples.targets, strict=True):
        module.zero_grad()
        output = module(torch.tensor(row[None], dtype=torch.float32))
        wanted = torch.tensor([target], dtype=torch.float32)
        if loss == "cross_entropy":
            value = torch.nn.functional.cross_entropy(output, wanted.long())
        elif loss == "mse":
            value = ((output.reshape(-1) - wanted) ** 2).mean()
        else:
            value = torch.nn.functional.softplus(-(2 * wanted - 1) * output.reshape(-1)).mean()
        value.backward()
        found.append(np.concatenate([one.grad.numpy().reshape(-1) for one in module.parameters()]))
    return np.array(found, dtype=np.float64)


def rows_for(loss: str, rows: int = 9) -> Examples:
    return rows_of(4, rows, 3 if loss == "cross_entropy" else 2)


@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_are_those_of_autograd_one_by_one(loss: str) -> None:
    module, examples = module_for(loss), rows_for(loss)
    mine, each = TorchObjective(module, loss), one_by_one(module, loss, examples)
    start = mine.start(mine.dimension(4))
    assert mine.gradient(start, examples) == pytest.approx(each.mean(axis=0), abs=1e-6)
    lengths = np.linalg.norm(each, axis=1)
    clip = float(np.median(lengths))
    clipped = each * np.minimum(1.0, clip / lengths)[:, None]
    assert (lengths > clip).any()
    assert (lengths < clip).any()
    assert mine.clipped_sum(start, examples, clip) == pytest.approx(clipped.sum(axis=0), abs=1e-5)
    assert mine.clipped_gradient(start, examples, clip) == pytest.approx(clipped.mean(axis=0), abs=1e-6)


@pytest.mark.parametrize("make", [torch_models.digits_network, torch_models.ratings])
def test_gradients_of_convolutions_and_of_factors_too(make: Any) -> None:
    module = make()
    image = make is torch_models.digits_network
    examples = (
        rows_of(64, 4, 10) if image else examples_of([[0.0, 1.0], [39.0, 59.0], [0.0, 5.0]], [1.0, -1.0, 0.5], None)
    )
    loss = "cross_entropy" if image else "mse"
    mine = TorchObjective(module, loss)
    found = mine.gradient(mine.start(mine.dimension(examples.features.shape[1])), examples)
    assert found == pytest.approx(one_by_one(module, loss, examples).mean(axis=0), abs=1e-5)


def test_no_swap_of_a_row_moves_the_sum_by_more_than_twice_the_clip() -> None:
    """All swaps of one row by any of six others, whatever it was: also rows that are huge."""
    mine, clip = TorchObjective(small_network()), 0.3
    model = mine.start(mine.dimension(4))
    pool = rows_of(4, 8, 3)
    features = pool.features * np.array([1, 1, 1e3, 1e6, 1e-9, 1, 0, -1e6])[:, None]
    largest = 0.0
    for place in range(3):
        for other in range(3, 8):
            rows = [0, 1, 2]
            before = mine.clipped_sum(model, examples_of(features[rows], pool.targets[rows], None), clip)
            rows[place] = other
            after = mine.clipped_sum(model, examples_of(features[rows], pool.targets[rows], None), clip)
            largest = max(largest, float(np.linalg.norm(after - before)))
    assert 0.9 * clip < largest <= 2.0 * clip * (1.0 + 2**-40)


def test_blocks_of_rows_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, examples = TorchObjective(small_network()), rows_for("cross_entropy", 11)
    model = mine.start(mine.dimension(4))
    whole = mine.clipped_sum(model, examples, 0.2)
    monkeypatch.setattr("p2pdp.tasks.torch_objective._BLOCK_ROWS", 3)
    assert mine.clipped_sum(model, examples, 0.2) == pytest.approx(whole, rel=1e-12, abs=1e-9)
    assert mine.loss(model, examples) == pytest.approx(TorchObjective(small_network()).loss(model, examples))


def test_scores_are_what_the_module_tells() -> None:
    torch = torch_here()
    module, examples = small_network(), rows_for("cross_entropy", 30)
    mine = TorchObjective(module)
    start = mine.start(mine.dimension(4))
    outputs = module(torch.tensor(examples.features, dtype=torch.float32))
    targets = torch.tensor(examples.targets).long()
    assert mine.score(start, examples) == (outputs.argmax(dim=1) == targets).double().mean().item()
    assert mine.loss(start, examples) == pytest.approx(
        torch.nn.functional.cross_entropy(outputs, targets).item(), abs=1e-6
    )
    line = TorchObjective(torch.nn.Linear(1, 1), "mse")
    assert line.score(np.array([2.0, 1.0]), examples_of([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0], None)) == pytest.approx(
        1.0
    )
    sign = TorchObjective(torch.nn.Linear(1, 1), "bce")
    assert sign.score(np.array([1.0, 0.0]), examples_of([[-1.0], [1.0]], [-1.0, -1.0], None)) == 0.5
    assert TorchObjective(module, lambda outputs, _: outputs.sum()).score(start, examples) is None


def test_a_loss_of_ones_own_is_taken() -> None:
    torch = torch_here()
    module, examples = torch.nn.Linear(4, 1), rows_for("mse")
    mine = TorchObjective(module, lambda outputs, targets: (outputs.reshape(-1) - targets) ** 2)
    ours = TorchObjective(module, "mse")
    start = mine.start(mine.dimension(4))
    assert mine.clipped_sum(start, examples, 0.5) == pytest.approx(ours.clipped_sum(start, examples, 0.5))


def test_what_is_not_learned_stays_and_counts_in_the_digest_of_the_start() -> None:
    module = small_network()
    module[0].weight.requires_grad_(requires_grad=False)
    mine = TorchObjective(module)
    assert [name for name, _ in mine.layout] == ["0.bias", "2.weight", "2.bias"]
    dimension = mine.dimension(4)
    assert dimension == 5 + 15 + 3
    before = start_digest(start_of(mine, dimension), mine.constants())
    module[0].weight.data[0, 0] += 1.0
    other = TorchObjective(module)
    assert start_digest(start_of(other, dimension), other.constants()) != before
    assert (start_of(other, dimension) == start_of(mine, dimension)).all()


def test_arrays_have_the_names_and_shapes_of_parameters() -> None:
    mine = TorchObjective(small_network())
    model = np.arange(float(mine.dimension(4)))
    named = mine.arrays(model)
    assert {name: one.shape for name, one in named.items()} == {
        "0.weight": (5, 4), "0.bias": (5,), "2.weight": (3, 5), "2.bias": (3,)
    }  # fmt: skip
    assert np.concatenate([one.reshape(-1) for one in named.values()]).tolist() == model.tolist()
    assert arrays_of((("x", ()), ("y", (2,))), np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))["y"].tolist() == [
        [2.0, 3.0], [5.0, 6.0]
    ]  # fmt: skip


def test_nothing_is_promised() -> None:
    assert TorchObjective(small_network()).guarantees(1.0) == Guarantees()


def refused() -> list[tuple[Any, str]]:
    nn = torch_here().nn

    class Random(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch_here().zeros(3))

        def forward(self, rows: Any) -> Any:
            return self.weight * torch_here().rand(1) + rows.sum(dim=1, keepdim=True)

    return [
        (nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.1)), "random"),
        (nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)), "GroupNorm"),
        (nn.Sequential(nn.Linear(4, 3), nn.InstanceNorm1d(3, track_running_stats=True)), "GroupNorm"),
        (nn.LSTM(4, 3, num_layers=2, dropout=0.5), "random"),
        (nn.ReLU(), "no parameter"),
        (nn.LazyLinear(3), "no shape"),
        (nn.Linear(4, 3, dtype=torch_here().complex64), "real floats"),
        (nn.Linear(5, 3), "4 zeros"),
        (Random(), "zeros"),
        ("a text", r"nn\.Module"),
    ]


@pytest.mark.parametrize(("place", "words"), list(enumerate(words for _, words in refused())))
def test_modules_whose_gradients_would_not_do_are_refused(place: int, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        TorchObjective(refused()[place][0]).dimension(4)


def test_no_dropout_is_none_and_a_layer_norm_is_taken() -> None:
    nn = torch_here().nn
    assert TorchObjective(nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.0), nn.LayerNorm(3))).dimension(4) == 21


def test_errors_name_no_value() -> None:
    with pytest.raises(UsageError, match="from 0 to 2") as caught:
        TorchObjective(small_network()).check(examples_of([[777.0] * 4], [3.0], None))
    assert "777" not in str(caught.value)


def test_rows_on_which_a_gradient_fails_count_as_zero_and_end_no_run() -> None:
    """An error would tell everybody that such a row was in a step."""
    mine = TorchObjective(torch_models.ratings(), "mse")
    start = mine.start(mine.dimension(2))
    usual = examples_of([[1.0, 1.0], [2.0, 3.0]], [0.0, 1.0], None)
    beside = examples_of([[1.0, 1.0], [777.0, 1.0], [2.0, 3.0]], [0.0, 0.0, 1.0], None)  # no such person
    assert mine.clipped_sum(start, beside, 1.0) == pytest.approx(mine.clipped_sum(start, usual, 1.0), abs=1e-6)
    assert (mine.loss(start, beside), mine.score(start, beside)) == (math.inf, None)
    huge = examples_of([[1.0, 1.0], [2.0, 3.0]], [0.0, 1e300], None)
    one = np.array([True, False])
    assert mine.clipped_sum(start, huge, 1.0).tolist() == mine.clipped_sum(start, huge, 1.0, one).tolist()
    classes = TorchObjective(small_network())
    begin = classes.start(classes.dimension(4))
    bad = examples_of([[0.0] * 4, [1.0] * 4], [3.0, 1.0], None)
    assert classes.clipped_sum(begin, bad, 1.0).tolist() == classes.clipped_sum(begin, bad, 1.0, ~one).tolist()
    assert classes.loss(begin, bad) == math.inf


def test_what_a_row_adds_does_not_depend_on_which_others_are_chosen() -> None:
    torch = torch_here()
    torch.manual_seed(3)
    mine = TorchObjective(torch.nn.Linear(20, 1), "mse")
    random = np.random.default_rng(1)
    examples = examples_of(random.normal(2e4, 1e4, (70, 20)), np.zeros(70), None)
    model = mine.start(mine.dimension(20))
    chosen = random.random(70) < 0.5
    for row in (0, 1, 33, 69):
        with_it, without = chosen.copy(), chosen.copy()
        with_it[row], without[row] = True, False
        alone = np.zeros(70, dtype=np.bool_)
        alone[row] = True
        added = mine.clipped_sum(model, examples, 1.0, with_it) - mine.clipped_sum(model, examples, 1.0, without)
        assert added == pytest.approx(mine.clipped_sum(model, examples, 1.0, alone), abs=1e-12)


SAID = """
import numpy as np, torch
from p2pdp.tasks.torch_objective import TorchObjective
from tests.support.torches import rows_of, small_network
torch.set_num_threads({threads})
mine = TorchObjective(small_network())
model = mine.start(mine.dimension(4))
print(mine.clipped_sum(model, rows_of(4, 700, 3), 0.1).tobytes().hex(), torch.get_num_threads())
"""


def test_the_same_bits_in_every_process_whatever_its_threads() -> None:
    said = [
        subprocess.run(
            [sys.executable, "-c", SAID.format(threads=threads)], cwd=TOP, capture_output=True, text=True, check=True
        ).stdout.split()
        for threads in (1, 2)
    ]
    assert said[0][0] == said[1][0]
    assert [threads for _, threads in said] == ["1", "2"], "a caller's own setting stays"


def test_the_public_name_makes_one() -> None:
    mine = p2pdp.torch_objective(small_network(), "cross_entropy")
    assert isinstance(mine, p2pdp.Objective)
    assert mine.name == "torch"
    with pytest.raises(UsageError, match="cross_entropy, bce, mse"):
        p2pdp.torch_objective(small_network(), "hinge")
