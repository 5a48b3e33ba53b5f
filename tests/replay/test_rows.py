from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.values import ZERO_FORM, LinearForm, Source, expand
from p2pdp.replay.rows import Layout, stretches


def source(number: int) -> LinearForm:
    return LinearForm.of(Source("draw", number % 3, number))


def chain(length: int, start: LinearForm = ZERO_FORM, first: int = 0) -> list[LinearForm]:
    forms = [start]
    for number in range(first, first + length):
        forms.append(forms[-1] + source(number))
    return forms[1:]


def dense(layout: Layout, terms: Any, width: int) -> Any:
    """The rows as a matrix over sources."""
    matrix = np.zeros((terms.rows, width))
    for row, number, place, weight in zip(terms.row, terms.chain, terms.place, terms.weight, strict=True):
        arrays = layout.chain(int(number))
        matrix[row, arrays.sources[int(place)].number] += weight * arrays.weights[int(place)]
    return matrix


def plain(forms: list[LinearForm], width: int) -> Any:
    matrix = np.zeros((len(forms), width))
    for row, form in enumerate(forms):
        for one, weight in form.expand().items():
            matrix[row, one.number] += weight
    return matrix


def assert_same_space(forms: list[LinearForm], width: int) -> Any:
    """Reduced rows span what the forms span, no less and no more."""
    layout = Layout()
    placed = [layout.place(form) for form in forms]
    terms = stretches(placed)
    rows, full = dense(layout, terms, width), plain(forms, width)
    rank = np.linalg.matrix_rank(full) if full.size else 0
    assert (np.linalg.matrix_rank(rows) if rows.size else 0) == rank
    assert (np.linalg.matrix_rank(np.vstack([rows, full])) if full.size else 0) == rank
    return rows


def test_visits_on_one_chain_become_stretches_between_them() -> None:
    forms = chain(10)
    rows = assert_same_space([forms[6], forms[2], forms[2], forms[9]], 10)
    assert rows.tolist() == [[1.0] * 3 + [0.0] * 7, [0.0] * 3 + [1.0] * 4 + [0.0] * 3, [0.0] * 7 + [1.0] * 3]


def test_a_chain_that_goes_on_in_two_ways_is_two_chains() -> None:
    """The same value sent to two users, who each add their own."""
    forms = chain(4)
    one, other = chain(3, forms[-1], 4), chain(3, forms[-1], 7)
    layout = Layout()
    for form in (*one, *other):
        layout.place(form)
    assert layout.chains == 2
    for number in range(2):
        assert len(layout.chain(number).sources) == 7
    assert_same_space([one[0], other[1], forms[1]], 10)
    assert_same_space([other[2], one[2], forms[3], one[1]], 10)


def test_a_sum_of_chains_counts_beyond_what_is_known_of_each() -> None:
    one, other = chain(5), chain(5, ZERO_FORM, 5)
    total = one[-1] + other[-1]
    rows = assert_same_space([one[2], total], 10)
    assert rows.tolist() == [[1.0] * 3 + [0.0] * 7, [0.0] * 3 + [1.0] * 7]
    assert assert_same_space([one[-1], other[-1], total], 10).shape == (2, 10)
    assert assert_same_space([total], 10).shape == (1, 10)


def test_empty_forms_are_no_rows() -> None:
    assert assert_same_space([ZERO_FORM, ZERO_FORM], 1).shape == (0, 1)
    assert stretches([]).rows == 0


def test_a_form_is_placed_once_however_deep() -> None:
    forms = chain(5000)
    layout = Layout()
    assert layout.place(forms[-1]) == {(0, 5000): 1.0}
    assert layout.place(forms[10]) == {(0, 11): 1.0}


@given(st.integers(0, 2**32))
def test_any_forms_keep_their_meaning_and_their_space(seed: int) -> None:
    """Chains, forks, sums, multiples and differences, at random."""
    random = np.random.default_rng(seed)
    forms, number = [ZERO_FORM], 0
    for _ in range(14):
        parent = forms[random.integers(len(forms))]
        kind = random.integers(6)
        if kind <= 2:
            forms.append(parent + source(number))
            number += 1
        elif kind == 3:
            forms.append(parent + forms[random.integers(len(forms))])
        elif kind == 4:
            forms.append(parent * float(random.choice([-1.0, 0.5, 2.0])))
        else:
            forms.append(parent - forms[random.integers(len(forms))])
    layout, width = Layout(), max(1, number)
    for form in forms:
        meaning = np.zeros(width)
        for (place, length), weight in layout.place(form).items():
            prefix = layout._chains[place]
            for one, own in zip(prefix.sources[:length], prefix.weights[:length], strict=True):
                meaning[one.number] += weight * own
        expected = np.zeros(width)
        for one, weight in expand([(form, 1.0)]).items():
            expected[one.number] += weight
        np.testing.assert_allclose(meaning, expected, atol=1e-9)
    chosen = [forms[at] for at in random.integers(0, len(forms), 5)]
    assert_same_space(chosen, width)
