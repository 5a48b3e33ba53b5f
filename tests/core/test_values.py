from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core import values
from p2pdp.core.values import ZERO_FORM, LinearForm, Source, expand

if TYPE_CHECKING:
    from collections.abc import Callable

Model = dict[Source, Fraction]

SOURCES = [Source("input", 0, 0), Source("input", 1, 0), Source("draw", 1, 0), Source("draw", 1, 1)]
FACTORS = (-1, 0, 1, 2, 0.5, -0.25)  # powers of two: floats lose nothing in these few steps
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["of", "add", "subtract", "negate", "multiply", "divide", "sum"]),
        st.integers(0, 40),
        st.integers(0, 40),
        st.integers(0, 5),
    ),
    max_size=14,
)


def scaled(model: Model, factor: float) -> Model:
    return {source: weight * Fraction(factor) for source, weight in model.items()}


def added(first: Model, second: Model) -> Model:
    return {source: first.get(source, Fraction()) + second.get(source, Fraction()) for source in {*first, *second}}


def computed(operation: str, one: Any, other: Any, factor: float, number: int) -> tuple[LinearForm, Model]:
    """One operation, on forms and on plain dictionaries."""
    (form, model), (other_form, other_model) = one, other
    if operation == "of":
        source = SOURCES[number % len(SOURCES)]
        return LinearForm.of(source), {source: Fraction(1)}
    if operation == "add":
        return form + other_form, added(model, other_model)
    if operation == "subtract":
        return form - other_form, added(model, scaled(other_model, -1))
    if operation == "negate":
        return -form, scaled(model, -1)
    if operation == "multiply":
        return (factor * form if number % 2 else form * factor), scaled(model, factor)
    if operation == "divide":
        return form / (factor or 4), scaled(model, 1 / (factor or 4))
    return sum([form, other_form, form], start=ZERO_FORM), added(scaled(model, 2), other_model)


def weights(model: Model) -> dict[Source, float]:
    return {source: float(weight) for source, weight in model.items() if weight}


@given(steps=STEPS, picks=st.tuples(st.integers(0, 40), st.integers(0, 40)))
def test_the_algebra_is_that_of_plain_dictionaries(
    steps: list[tuple[str, int, int, int]], picks: tuple[int, int]
) -> None:
    made: list[tuple[LinearForm, Model]] = [
        (ZERO_FORM, {}),
        *((LinearForm.of(source), {source: Fraction(1)}) for source in SOURCES),
    ]
    for operation, one, other, number in steps:
        pair = made[one % len(made)], made[other % len(made)]
        made.append(computed(operation, *pair, FACTORS[number], number))
    for form, model in made:
        assert form.expand() == weights(model)
    (first, first_model), (second, second_model) = (made[pick % len(made)] for pick in picks)
    expected = added(scaled(first_model, 2), scaled(second_model, -0.5))
    assert expand([(first, 2.0), (second, -0.5)]) == weights(expected)


def test_operations_never_change_their_operands() -> None:
    one, other = LinearForm.of(SOURCES[0]), LinearForm.of(SOURCES[1])
    both = one + other
    results = [both + one, both - other, -both, both * 3, both / 2]
    assert all(result.expand() != both.expand() for result in results)
    assert both.expand() == {SOURCES[0]: 1.0, SOURCES[1]: 1.0}
    assert one.expand() == {SOURCES[0]: 1.0}
    assert ZERO_FORM.expand() == {}


def test_a_sum_may_start_from_the_number_zero_and_from_no_other() -> None:
    form = LinearForm.of(SOURCES[0])
    assert sum([form, form]).expand() == {SOURCES[0]: 2.0}  # type: ignore[union-attr]
    for other in (1, 1.0, "0", None):
        with pytest.raises(TypeError):
            form + other
        with pytest.raises(TypeError):
            other + form  # type: ignore[operator]
    with pytest.raises(TypeError):
        form - 1


@pytest.mark.parametrize(
    "attempt",
    [
        lambda form: form == form,  # noqa: PLR0124
        lambda form: form != 0,
        lambda form: form < form,  # noqa: PLR0124
        lambda form: form <= 1,
        lambda form: form > 1.0,
        lambda form: form >= form,  # noqa: PLR0124
        lambda form: form in (ZERO_FORM, ZERO_FORM + ZERO_FORM),
        lambda form: max(form, ZERO_FORM),
        lambda form: "yes" if form else "no",
        lambda form: not form,
        int,
        float,
        complex,
        bool,
        len,
        abs,
        round,
        list,
        hash,
        math.floor,
        range,
        lambda form: f"{form:.3f}",
        lambda form: form * form,
        lambda form: form**2,
        lambda form: 1 / form,
        lambda form: form // 2,
        lambda form: form % 2,
        np.asarray,
        np.isfinite,
        lambda form: form + np.zeros(2),
        lambda form: np.zeros(2, dtype=np.int64) + form,
        lambda form: np.ones(2) * form,
        lambda form: np.ones(2) == form,
    ],
)
def test_whatever_is_not_linear_raises(attempt: Callable[[LinearForm], object]) -> None:
    with pytest.raises(TypeError):
        attempt(LinearForm.of(SOURCES[0]))


def test_weights_may_be_entries_of_a_float_array() -> None:
    form = LinearForm.of(SOURCES[0]) + LinearForm.of(SOURCES[1])
    for factor in np.array([0.5, -3.0]):
        expected = dict.fromkeys(SOURCES[:2], float(factor))
        assert (factor * form).expand() == expected
        assert (form * factor).expand() == expected
        assert (form / factor).expand() == dict.fromkeys(SOURCES[:2], 1 / float(factor))


def test_dividing_by_zero_raises() -> None:
    with pytest.raises(ZeroDivisionError):
        LinearForm.of(SOURCES[0]) / 0


def test_a_text_shows_no_source_and_no_weight() -> None:
    form = LinearForm.of(Source("input", 4711, 5)) * 0.123
    assert str(form) == repr(form) == "LinearForm(depth=1)"


def chain(steps: int) -> list[LinearForm]:
    """A token's values: each is the one before it, a contribution and sometimes a draw."""
    made = [ZERO_FORM]
    for step in range(steps):
        form = made[-1] + LinearForm.of(Source("input", step % 100, step // 100))
        made.append(form + LinearForm.of(Source("draw", step % 100, step)) if step % 10 == 0 else form)
    return made


def test_the_difference_of_two_visits_looks_at_the_stretch_between_them_only(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = chain(50_000)
    looked_at = 0

    def counting(queue: list[Any], item: Any) -> None:
        nonlocal looked_at
        looked_at += 1
        original(queue, item)

    original = values.heappush
    monkeypatch.setattr(values, "heappush", counting)
    found = expand([(tokens[49_990], 1.0), (tokens[49_970], -1.0)])
    assert looked_at < 60
    assert found == {
        **{Source("input", step % 100, step // 100): 1.0 for step in range(49_970, 49_990)},
        **{Source("draw", step % 100, step): 1.0 for step in (49_970, 49_980)},
    }


def test_a_long_chain_meets_no_limit_of_recursion() -> None:
    tokens = chain(50_000)
    last = tokens[-1]
    del tokens
    found = last.expand()
    assert len(found) == 55_000
    assert set(found.values()) == {1.0}
    scaled_down = ZERO_FORM
    for _ in range(20_000):
        scaled_down = (scaled_down + last) / 2
    assert set(scaled_down.expand().values()) == {1.0}
    del last, scaled_down  # giving the memory back must not recurse either


def test_a_sum_shared_in_many_ways_is_walked_once() -> None:
    """Doubling 200 times has 2**200 paths to its only source."""
    form = LinearForm.of(SOURCES[0])
    for _ in range(200):
        form = (form + form) / 2  # one node with two equal parents
    assert form.expand() == {SOURCES[0]: 1.0}


def test_sums_do_not_depend_on_addresses() -> None:
    def mixed(kept: list[object]) -> dict[Source, float]:
        """The same form whatever is in memory before its parts."""
        states = []
        for user in range(7):
            kept.append(bytearray(1 + 37 * (len(kept) * 7 % 11)))
            states.append(LinearForm.of(Source("input", user, 0)))
        for number in range(1, 6):
            states = [states[user] * 0.3 + states[(user + number) % 7] * 0.7 for user in range(7)]
        return states[0].expand()

    kept: list[object] = []
    assert len({tuple(mixed(kept).items()) for _ in range(20)}) == 1
