from __future__ import annotations

import json
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.files.json_text import json_pieces

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
DOCUMENTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner), max_leaves=20
)


def text(value: object) -> str:
    return "".join(json_pieces(value))


@given(DOCUMENTS)
def test_the_text_is_that_of_the_standard_library(document: object) -> None:
    assert text(document) == json.dumps(document, indent=1)


@pytest.mark.parametrize("document", [[1.5] * 4096 + ["a", 2.0], (1.0, (2, True)), {None: [1.0]}, [0.5] * 9000])
def test_so_is_that_of_long_and_mixed_lists(document: object) -> None:
    assert text(document) == json.dumps(document, indent=1)


@pytest.mark.parametrize("count", [0, 1, 4096, 4097])
def test_an_array_is_written_as_the_list_of_its_numbers(count: int) -> None:
    numbers = np.linspace(-1.0, 1.0, count)
    assert text({"value": numbers, "of": [numbers]}) == json.dumps(
        {"value": numbers.tolist(), "of": [numbers.tolist()]}, indent=1
    )


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused(wrong: float) -> None:
    for document in (wrong, [1.0, wrong], {"a": wrong}, np.array([0.0, wrong])):
        with pytest.raises(ValueError, match="not JSON compliant"):
            text(document)


def test_what_is_no_value_of_json_is_refused() -> None:
    with pytest.raises(TypeError):
        text({"a": object()})


def test_text_is_made_in_pieces_that_do_not_grow() -> None:
    numbers = np.random.default_rng(1).random(200_000)
    tracemalloc.start()
    longest = max(map(len, json_pieces({"outputs": [numbers] * 3})))
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert longest < 200_000
    assert peak_bytes < 2_000_000
