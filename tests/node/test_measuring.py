from __future__ import annotations

import json
from pathlib import Path

import pytest

from p2pdp.core.errors import UsageError, VerificationFailed
from p2pdp.core.spec import Spec, TaskPart
from p2pdp.files.model_code import model_code
from p2pdp.files.spec import parse_spec
from p2pdp.node.measuring import MEASURES_FILE, answer, with_measures
from p2pdp.protocols.learning import dimension_of, model_facts
from p2pdp.tasks.named import NamedObjective, loaded, measured
from tests.support.learners import learning
from tests.support.torches import torch_here

TORCH = 'kind = "torch"\nmodel = "p2pdp.tasks.torch_models:two_features"\nloss = "bce"\nclip = 1.0\nrate = 0.2'


def spec_of(task: str = TORCH) -> Spec:
    return parse_spec(learning(4, 8, task=task), None)


def test_measures_are_taken_by_another_process_once_for_a_folder(tmp_path: Path) -> None:
    torch_here()
    spec = with_measures(spec_of(), tmp_path)
    assert dimension_of(spec, 2) == 3
    told = json.loads((tmp_path / MEASURES_FILE).read_text())
    assert told["dimension"] == 3
    own = spec.task.own
    assert isinstance(own, NamedObjective)
    assert own._real is None, "nothing of it is here"
    assert own.known == measured(loaded(spec.task), 2, None)
    facts = model_facts(spec, 3)
    assert (facts["start"], facts["model"]) == (told["start"], model_code(spec.task))
    (tmp_path / MEASURES_FILE).write_text(json.dumps({**told, "dimension": 4}))
    assert dimension_of(with_measures(spec_of(), tmp_path), 2) == 4, "what the folder keeps is taken"
    (tmp_path / MEASURES_FILE).write_text("{}")
    with pytest.raises(VerificationFailed, match="damaged"):
        dimension_of(with_measures(spec_of(), tmp_path), 2)


def test_its_errors_come_back_as_they_are() -> None:
    torch_here()
    spec = with_measures(spec_of(TORCH.replace("two_features", "digits_network")))
    with pytest.raises(UsageError, match="row of 2 zeros"):
        dimension_of(spec, 2)


def test_specs_that_name_no_objective_stay_as_they_are() -> None:
    plain = parse_spec(learning(4, 8), None)
    assert with_measures(plain) is plain
    assert model_facts(plain, 3) == {}


def test_the_process_answers_with_what_is_public() -> None:
    torch_here()
    task = TaskPart("torch", model="p2pdp.tasks.torch_models:two_features")
    asked = {"kind": task.kind, "model": task.model}
    assert set(answer({"task": asked, "columns": 2, "norm_max": None})) == {
        "dimension", "start", "start_max", "guarantees", "score_name", "layout"
    }  # fmt: skip
