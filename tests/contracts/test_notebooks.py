"""Each notebook of the guide runs from scratch, is stored with what it gives today, and its text has its numbers."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path

import pytest

from tests.support.notebooks import NOTEBOOKS, Document, code_cells, executed, is_live, output_text, read, text_of

AGAIN = "store the outputs again: python -m tests.support.notebooks"
NUMBER = re.compile(r"`([0-9]+(?:\.[0-9]+)?)`")


def kinds(cell: Document) -> list[list[str]]:
    return [[output["output_type"], *sorted(output.get("data", {}))] for output in cell["outputs"]]


FLOAT = re.compile(r"\d+\.\d+(?:e[+-]?\d+)?")


def alike(one: str, other: str) -> bool:
    """Whether two texts are the same but for the last digits of numbers, which depend on the processor."""
    if FLOAT.sub("#", one) != FLOAT.sub("#", other):
        return False
    return [float(text) for text in FLOAT.findall(one)] == pytest.approx(
        [float(text) for text in FLOAT.findall(other)], rel=1e-9
    )


def test_only_the_last_digits_of_numbers_may_differ() -> None:
    assert alike("epsilon 1.0081378058900654, 3", "epsilon 1.0081378058900649, 3")
    assert not alike("epsilon 1.008, 3", "epsilon 1.009, 3")
    assert not alike("epsilon 1.008, 3", "epsilon 1.008, 4")
    assert not alike("delta 1e-5", "delta 1e-6")


def stale(stored: Document, fresh: Document) -> list[str]:
    """The cells whose stored outputs are not those of a run; of pictures and live runs only the kind is compared."""
    said = []
    for old, new in zip(code_cells(stored), code_cells(fresh), strict=True):
        same = kinds(old) == kinds(new) and (is_live(old) or alike(output_text(old), output_text(new)))
        if not same or old["execution_count"] != new["execution_count"]:
            said.append(f"{old['id']}: {AGAIN}")
    return said


def unfounded(document: Document) -> list[str]:
    """The numbers in the text that no output before them holds."""
    seen, said = "", []
    for cell in document["cells"]:
        if cell["cell_type"] == "code":
            seen += "" if is_live(cell) else output_text(cell)
        else:
            named = NUMBER.findall("".join(cell["source"]))
            said += [one for one in named if not re.search(rf"(?<![\d.]){re.escape(one)}(?!\d|\.0*[1-9])", seen)]
    return said


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_its_outputs_are_those_stored(path: Path) -> None:
    stored = read(path)
    assert stale(stored, executed(stored)) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_can_be_read_as_it_is(path: Path) -> None:
    document = read(path)
    assert path.read_text("utf-8") == text_of(document)
    assert len(text_of(document)) < 150_000
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    assert document["cells"][0]["source"][0].startswith("# ")
    ids = [cell["id"] for cell in document["cells"]]
    assert len(set(ids)) == len(ids)
    assert sum(len(code["outputs"]) for code in code_cells(document)) >= 5
    text = json.dumps(document)
    assert "<script" not in text
    assert str(Path.home()) not in text
    for page in re.findall(r"\]\(\.\./([a-z]+\.md)\)", text):
        assert (path.parents[1] / page).is_file()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_numbers_in_the_text_are_those_of_the_outputs(path: Path) -> None:
    document = read(path)
    assert sum(len(NUMBER.findall("".join(cell["source"]))) for cell in document["cells"]) >= 2
    assert unfounded(document) == []


def test_there_are_three() -> None:
    assert {path.stem for path in NOTEBOOKS} == {"private_mean", "gossip_paper", "audit_of_others"}


def test_what_is_stale_or_unfounded_is_seen() -> None:
    cells = [
        {
            "cell_type": "code",
            "id": "a",
            "metadata": {},
            "source": ["x = 2.5\n", "x"],
            "outputs": [],
            "execution_count": 1,
        },
        {"cell_type": "markdown", "id": "b", "metadata": {}, "source": ["It is `2.5` and not `2`."]},
    ]
    fresh = executed({"cells": cells})
    assert stale(fresh, fresh) == []
    assert unfounded(fresh) == ["2"]
    changed = copy.deepcopy(fresh)
    changed["cells"][0]["outputs"][0]["data"]["text/plain"] = ["2.6"]
    assert len(stale(changed, fresh)) == 1
    with pytest.raises(ZeroDivisionError):
        executed({"cells": [{**cells[0], "source": ["1 / 0"]}]})
