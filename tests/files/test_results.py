from __future__ import annotations

import json
import math
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from p2pdp.core.errors import UsageError, VerificationFailed
from p2pdp.files.folder import RESULT_FILE, read_document, write_json
from p2pdp.files.results import LONG, read_result


def outputs_of(*values: Any) -> dict[str, Any]:
    return {"run_id": "00", "outputs": [{"user": user, "value": value} for user, value in enumerate(values)], "z": [1]}


def as_lists(document: dict[str, Any]) -> dict[str, Any]:
    for one in (document, *document.get("outputs", ())):
        for key, value in one.items():
            if hasattr(value, "typecode"):
                assert len(value) > LONG
                one[key] = list(value)
    return document


LINE = [math.sin(place) for place in range(2 * LONG)]


@pytest.mark.parametrize(
    "document",
    [
        outputs_of([0.1, -1e-300, 5.0, 1e300], [1.0, 2.0, 3.0, 4.0]),
        outputs_of([0.1], ["inf", 0.5], 0.25, None, "x"),
        outputs_of([], [[1.0], [2.0]]),
        outputs_of(),
        {"outputs": [], "value": [1.0, 2.0]},
        outputs_of(LINE, LINE[:LONG], LINE[: LONG + 1]),
        {"truth": LINE, "error": LINE, "missing": [1, 2**60], "outputs": [], "z": list(range(2 * LONG))},
        outputs_of([*LINE, "inf", 1.0], ["inf", *LINE], [*LINE, "-inf"], [LINE, LINE], [*LINE, [1.0]]),
        outputs_of(LINE, "vector 0", "\0vector") | {"note": "[\n"},
    ],
)
def test_a_result_is_read_as_any_document(tmp_path: Path, document: dict[str, Any]) -> None:
    write_json(tmp_path / RESULT_FILE, document)
    assert as_lists(read_result(tmp_path)) == read_document(tmp_path, RESULT_FILE)
    (tmp_path / RESULT_FILE).write_text(json.dumps(document))  # all in one line
    assert read_result(tmp_path) == document


def test_vectors_take_little_memory(tmp_path: Path) -> None:
    users, numbers = 8, 20_000
    vector = [math.sin(place) for place in range(numbers)]
    document = outputs_of(*[vector] * users) | {"truth": vector, "error": vector}
    write_json(tmp_path / RESULT_FILE, document)
    del document
    tracemalloc.start()
    try:
        document = read_result(tmp_path)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [len(one["value"]) for one in document["outputs"]] == [numbers] * users
    assert kept < 10 * (users + 2) * numbers
    assert peak < kept + 10 * numbers + 200 * LONG


@pytest.mark.parametrize(
    "end", ["1.5\n]}", '1.5\n],\n "y": 2}', "NaN,\n null\n]\n}", '1.5\n], "y": [\n]}', "Infinity\n]\n}"]
)
def test_a_result_that_is_laid_out_in_another_way_is_read_as_it_is(tmp_path: Path, end: str) -> None:
    text = '{"x": [\n' + "".join(f"{number}.5,\n" for number in range(2 * LONG)) + end
    (tmp_path / RESULT_FILE).write_text(text)
    assert repr(as_lists(read_result(tmp_path))) == repr(as_lists(json.loads(text)))


def test_what_is_no_result_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=RESULT_FILE):
        read_result(tmp_path)
    for text in ("[1]", '{"outputs": [', '"value": [\n1,\n'):
        (tmp_path / RESULT_FILE).write_text(text)
        with pytest.raises(VerificationFailed, match=RESULT_FILE):
            read_result(tmp_path)
