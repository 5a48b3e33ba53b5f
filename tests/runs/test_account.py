from __future__ import annotations

import json
import math

import numpy as np
import pytest

import p2pdp
from p2pdp.core.errors import Refused, UsageError
from p2pdp.files.folder import to_json
from p2pdp.runs.account import account, accountants, inputs_of


def test_an_answer_has_the_fields_of_its_document() -> None:
    found = p2pdp.account("gaussian", sigma=1, delta=1e-5)
    assert found.outputs["epsilon"] == pytest.approx(4.37717809568122, rel=1e-11)
    assert found == account("gaussian", {"sigma": 1, "delta": 1e-5})
    document = found.to_json()
    assert list(document) == ["name", "inputs", "outputs", "bound", "assumptions", "source"]
    assert document["inputs"] == {"sigma": 1, "delta": 1e-5}
    assert json.loads(to_json(document)) == document


def test_inputs_hold_defaults_and_plain_numbers() -> None:
    found = account("rdp_to_dp", {"alpha": np.float64(2), "rdp": 1, "delta": 1e-5})
    assert found.inputs == {"alpha": 2.0, "rdp": 1.0, "delta": 1e-5, "conversion": "tight"}
    assert type(found.inputs["alpha"]) is float


def test_infinity_is_a_word_in_documents() -> None:
    terms = {"epsilon": 700.0, "delta": 0.0, "n": 1, "hops": 10, "delta_prime": 0.1, "delta_hat": 0.1}
    found = account("complete_sum_v1", terms)
    assert found.outputs["epsilon"] == math.inf
    assert found.to_json()["outputs"]["epsilon"] == "inf"


def test_refusals_pass_through() -> None:
    with pytest.raises(Refused):
        p2pdp.account("ring_sum", epsilon=1, delta=1e-6, laps=1, delta_prime=1e-6, closing="no")
    with pytest.raises(UsageError):
        p2pdp.account("gaussian", name="x", delta=1e-6)


def test_every_accountant_and_input_is_listed() -> None:
    listed = {one["name"]: one["help"] for one in accountants()}
    assert "gaussian" in listed
    for name in listed:
        assert all(one["range"] for one in inputs_of(name))
    assert [one["name"] for one in inputs_of("rdp_to_dp")] == ["alpha", "rdp", "delta", "conversion"]
    assert inputs_of("rdp_to_dp")[3]["default"] == "tight"
