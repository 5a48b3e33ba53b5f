"""Examples in docstrings of what users import run and give what they say."""

from __future__ import annotations

import ast
import asyncio
import doctest
import re
from pathlib import Path
from typing import Any

import pytest

import p2pdp
from p2pdp import api
from p2pdp.files.guide import page
from p2pdp.runs.audit import Audited
from tests.support.notebooks import evaluate
from tests.support.sources import TOP


@pytest.mark.parametrize(("module", "least"), [(p2pdp, 6), (api, 7)])
def test_examples_of_a_module_run(module: object, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = doctest.testmod(module)  # type: ignore[arg-type]
    assert found.failed == 0
    assert found.attempted >= least


def test_the_readme_s_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", (TOP / "README.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    with asyncio.Runner() as runner:
        evaluate(compile(block, "README.md", "exec"), names, runner)
    result = names["result"]
    assert abs(result.error) <= 8 * result.standard_error < 8.0
    claims = capsys.readouterr().out.splitlines()[2:]
    assert {"node", "coalition", "curator", "curator+coalition", "public"} <= {line.split()[0] for line in claims}


def test_help_begins_with_what_to_do() -> None:
    assert p2pdp.__doc__ is not None
    first, _, rest = p2pdp.__doc__.partition("\n\n")
    assert "\n" not in first
    assert rest.index(">>> import p2pdp") < 100
    assert "import system" not in p2pdp.__doc__


def test_the_guide_s_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All Python blocks of the page run one after the other; `await` and the live runs as in a notebook."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", page("python").text, re.DOTALL)
    assert len(blocks) == 5
    names: dict[str, object] = {"rows": [0.25, 0.5, 0.75, 1.0] * 3}
    with asyncio.Runner() as runner:
        for number, block in enumerate(blocks):
            tree = ast.parse(block.replace('"my-run"', f'"run-{number}"'))
            evaluate(compile(tree, "python.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names, runner)
    plan = names["plan"]
    assert repr(plan).splitlines()[0] in page("python").text
    assert isinstance(names["audited"], Audited)
    assert names["audited"].nodes == 12
