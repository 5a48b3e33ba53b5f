from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from p2pdp.core.errors import Refused, UsageError
from p2pdp.privacy import contract
from p2pdp.privacy.contract import (
    DELTA,
    Accountant,
    Answer,
    account,
    accountant,
    checked,
    choice,
    names,
    number,
    read_inputs,
    whole,
)

SOME = Accountant(
    "help",
    (
        number("size", "size", 0.0, 2.0, default=1.0),
        number("share", "share", 0.0, 1.0, is_open=True),
        number("more", "more", 0.0, math.inf, optional=True),
        whole("count", "count", 1, 10),
        choice("how", "how", ("fast", "slow"), default="slow"),
    ),
    lambda _: Answer({}, True, (), ""),
)
GIVEN: dict[str, Any] = {"share": 0.5, "count": 3}


def test_the_names_are_those_of_the_files_in_order() -> None:
    wanted = (
        "advanced_composition complete_sgd complete_sum complete_sum_v1 gaussian gaussian_sigma gossip_table1 "
        "pairwise rdp_to_dp ring_histogram ring_sum walk_any_graph"
    )
    assert set(names()) >= set(wanted.split())
    assert list(names()) == sorted(names())


def test_inputs_come_checked_and_complete() -> None:
    assert checked(SOME, GIVEN) == {"size": 1.0, "share": 0.5, "more": None, "count": 3, "how": "slow"}
    full = {"size": 2, "share": 0.25, "more": 2**40, "count": 10, "how": "fast"}
    found = checked(SOME, full)
    assert found == full
    assert [type(found[name]) for name in ("size", "more", "count")] == [float, float, int]
    foreign = checked(SOME, {"share": np.float32(0.5), "count": np.int64(3)})
    assert [type(foreign[name]) for name in ("share", "count")] == [float, int]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"size": 2.1}, "size: 2.1 is not a number from 0 to 2"),
        ({"share": 1.0}, "share: 1.0 is not a number strictly between 0 and 1"),
        ({"share": math.nan}, "share: nan is not"),
        ({"share": True}, "share: True is not"),
        ({"share": "0.5"}, "share: '0.5' is not"),
        ({"count": 3.0}, "count: 3.0 is not a whole number from 1 to 10"),
        ({"count": 11}, "count: 11 is not"),
        ({"count": np.True_}, "count: "),
        ({"count": True}, "count: True is not"),
        ({"more": None}, "more: None is not"),
        ({"more": 10**400}, "more: 1000"),
        ({"how": "slowly"}, "how: 'slowly' is not one of fast, slow"),
        ({"how": 1}, "how: 1 is not"),
        ({"sise": 1.0}, 'sise: there is no such input; did you mean "size"?'),
        ({"zzz": 1.0}, "zzz: there is no such input; known are size, share, more, count, how"),
    ],
)
def test_what_does_not_fit_is_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        checked(SOME, {**GIVEN, **wrong})
    assert str(caught.value).startswith(words)


def test_what_is_missing_is_named_with_its_range() -> None:
    with pytest.raises(UsageError, match=r"^count: missing; it has to be a whole number from 1 to 10$"):
        checked(SOME, {"share": 0.5})


def test_an_unknown_accountant_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match='account gausian: there is no accountant of this name; did you mean "gaussi'):
        accountant("gausian")
    for name in ("", "__init__", "gaussian.py", "../gaussian", "zzzz"):
        with pytest.raises(UsageError, match=r"known are|did you mean"):
            accountant(name)


def test_errors_bear_the_name_of_the_accountant_once() -> None:
    with pytest.raises(UsageError, match=r"^account gaussian: mu: give either mu or sigma$"):
        account("gaussian", {"delta": 0.1})
    with pytest.raises(Refused, match=r"^account ring_histogram: Theorem 2 assumes epsilon below 1/2$"):
        account(
            "ring_histogram",
            {"epsilon": 0.5, "delta": 1e-6, "n": 2000, "categories": 2, "laps": 1, "delta_prime": 1e-6},
        )


def test_words_become_numbers_and_names() -> None:
    assert read_inputs("gossip_table1", ["graph=ring", "n=16", "alpha=2", "sigma=1e-3"]) == {
        "graph": "ring",
        "n": 16,
        "alpha": 2.0,
        "sigma": 1e-3,
    }
    assert read_inputs("gaussian", ["mu=x", "delte=3"]) == {"mu": "x", "delte": "3"}, "refused when checked"


@pytest.mark.parametrize(
    ("words", "said"),
    [(["mu"], "mu: inputs are written key=value"), (["mu=1", "mu=2"], "mu: given twice")],
)
def test_words_of_no_sense_are_refused(words: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=f"^account gaussian: {said}$"):
        read_inputs("gaussian", words)


@pytest.mark.parametrize("value", [math.nan, -1e-9, -math.inf])
def test_no_answer_holds_what_is_no_answer(value: float) -> None:
    with pytest.raises(ArithmeticError, match="epsilon came out as"):
        Answer({"epsilon": value}, True, (), "")
    assert Answer({"epsilon": math.inf, "delta": 0.0}, True, (), "").outputs["epsilon"] == math.inf


def test_ranges_are_said_in_words() -> None:
    assert DELTA.range == "a number strictly between 0 and 1"
    assert number("a", "a", 1e-6, 700.0).range == "a number from 1e-06 to 700"


def test_accountants_of_other_packages_are_found_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = SimpleNamespace(load=lambda: SOME)
    monkeypatch.setattr(contract, "installed", lambda _: {"some": entry, "gaussian": entry})
    assert "some" in names()
    assert accountant("some") is SOME
    assert accountant("gaussian") is not SOME  # ours come first
    with pytest.raises(UsageError, match='did you mean "some"'):
        accountant("sone")
