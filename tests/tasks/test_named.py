from __future__ import annotations

import json

import numpy as np
import pytest

from p2pdp.core.errors import UsageError, VerificationFailed
from p2pdp.core.installed import installed
from p2pdp.core.spec import TaskPart
from p2pdp.tasks.descent import Descent, GradientInputs
from p2pdp.tasks.examples import Examples, examples_of
from p2pdp.tasks.named import Measures, NamedObjective, loaded, measured
from p2pdp.tasks.objectives import Guarantees, Objective
from tests.support.torches import torch_here

TASK = TaskPart("torch", model="p2pdp.tasks.torch_models:two_features", loss="bce", start=4)
ROWS = examples_of([[1.0, 2.0], [0.5, -1.0]], [1.0, -1.0], None)


class Huber(Objective):
    name = "huber"
    score_name = "r2"

    def gradient(self, model: np.ndarray, examples: Examples) -> np.ndarray:  # type: ignore[type-arg, override]
        residuals = examples.features @ model - examples.targets
        return np.asarray(np.clip(residuals, -1.0, 1.0) @ examples.features / len(residuals))

    def loss(self, model: np.ndarray, examples: Examples) -> float:  # type: ignore[type-arg, override]
        return float(np.abs(examples.features @ model - examples.targets).mean())

    def guarantees(self, norm_max: float | None) -> Guarantees:
        return Guarantees(convex=True, smoothness=norm_max)


class Projecting(Huber):
    def project(self, model: np.ndarray) -> np.ndarray:  # type: ignore[type-arg, override]
        return np.clip(model, -1.0, 1.0)


class Entry:
    """An entry point as `installed` gives it."""

    def __init__(self, made: object) -> None:
        self.made, self.value = made, "somebody.elses:thing"

    def load(self) -> object:
        return lambda: self.made


@pytest.fixture
def entries(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"huber": Entry(Huber()), "boxed": Entry(Projecting()), "nothing": Entry(3)}
    monkeypatch.setattr("p2pdp.tasks.named.installed", lambda kind: found if kind == "objectives" else installed(kind))


@pytest.mark.usefixtures("entries")
def test_an_installed_objective_is_made_by_its_entry_point() -> None:
    mine = NamedObjective(TaskPart("huber"))
    assert mine.measures(2, 3.0) == Measures(2, mine.measures(2, 3.0).start, 0.0, Huber().guarantees(3.0), "r2")
    assert mine.dimension(2) == 2
    model = np.array([1.0, 0.0])
    assert mine.gradient(model, ROWS).tolist() == Huber().gradient(model, ROWS).tolist()
    assert mine.loss(model, ROWS) == Huber().loss(model, ROWS)
    assert mine.score(model, ROWS) is None
    assert (mine.name, mine.score_name) == ("huber", "r2")
    for kind, words in (("boxed", "projects"), ("nothing", "no p2pdp.Objective")):
        with pytest.raises(UsageError, match=words):
            loaded(TaskPart(kind))


@pytest.mark.parametrize(
    ("model", "loss", "words"),
    [
        ("there_is_no.such:thing", None, "model: .* cannot be imported"),
        ("p2pdp.tasks.torch_models:nothing", None, "has no nothing"),
        ("p2pdp.tasks.torch_models:USERS", None, "must be callable"),
        ("p2pdp.tasks.torch_models:two_features", "there_is_no.such:thing", "loss: .* cannot be imported"),
    ],
)
def test_what_cannot_be_loaded_is_named(model: str, loss: str | None, words: str) -> None:
    torch_here()
    with pytest.raises(UsageError, match=words):
        loaded(TaskPart("torch", model=model, loss=loss))


def test_the_start_follows_from_its_seed_and_nothing_else_is_touched() -> None:
    torch = torch_here()
    torch.manual_seed(11)
    before = torch.random.get_rng_state()
    first, again = (measured(loaded(TASK), 2, None) for _ in range(2))
    other = measured(loaded(TaskPart("torch", model=TASK.model, loss="bce", start=5)), 2, None)
    assert first == again
    assert first.start != other.start
    assert first.start_max > 0.0
    assert torch.equal(before, torch.random.get_rng_state())


def test_measures_survive_json_and_need_no_torch() -> None:
    torch_here()
    told = measured(loaded(TASK), 2, None)
    assert Measures.from_json(json.loads(json.dumps(told.to_json()))) == told
    asked: list[tuple[int, float | None]] = []
    mine = NamedObjective(TASK, lambda *terms: asked.append(terms) or told)  # type: ignore[func-returns-value]
    assert mine.known is None
    assert (mine.measures(2, 1.0).dimension, mine.measures(2, 1.0).dimension) == (3, 3)
    assert asked == [(2, 1.0)], "it is asked once"
    assert mine.dimension(2) == 3
    assert {name: one.tolist() for name, one in mine.arrays(np.arange(3.0)).items()} == {
        "weight": [[0.0, 1.0]], "bias": [2.0]
    }  # fmt: skip
    assert mine._real is None, "none of it was loaded"


def test_a_learner_whose_start_is_not_the_signed_one_does_not_begin() -> None:
    torch_here()
    mine = NamedObjective(TASK)
    signed = mine.measures(2, None).start

    def inputs(digest: str) -> GradientInputs:
        return GradientInputs(Descent(mine, Guarantees(), 3, 1.0, -20, start_digest=digest, start_max=1.0), ROWS)

    assert inputs(signed).start().tolist() == inputs(signed).start().tolist() != [0.0] * 3
    for wrong in ("", "sha256:" + "0" * 64):
        with pytest.raises(VerificationFailed, match="start"):
            inputs(wrong)
