"""The notebooks of the guide, run without Jupyter; `python -m tests.support.notebooks` stores their outputs anew.

A notebook's cells run one after the other in a fresh folder, with `await` at the top as in Jupyter. Its outputs are
what is printed, the last expression as text and HTML, and open figures as PNG. Cells with the tag `live` have noise
from the operating system: their numbers are new each time.
"""

from __future__ import annotations

import ast
import asyncio
import base64
import contextlib
import inspect
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

from p2pdp.files.guide import FOLDER

NOTEBOOKS = sorted((FOLDER / "notebooks").glob("*.ipynb"))
Document = dict[str, Any]


def read(path: Path) -> Document:
    document: Document = json.loads(path.read_text("utf-8"))
    return document


def text_of(document: Document) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def code_cells(document: Document) -> list[Document]:
    return [cell for cell in document["cells"] if cell["cell_type"] == "code"]


def is_live(cell: Document) -> bool:
    return "live" in cell["metadata"].get("tags", ())


@contextlib.contextmanager
def fresh_folder() -> Iterator[None]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def executed(document: Document) -> Document:
    """The notebook with the outputs of a run from scratch."""
    mpl.use("Agg")
    plt.close("all")
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = []
    with fresh_folder(), asyncio.Runner() as runner:
        count = 0
        for cell in document["cells"]:
            if cell["cell_type"] == "code":
                count += 1
                cells.append({**cell, "execution_count": count, "outputs": run_cell(cell, names, runner, count)})
            else:
                cells.append(cell)
    return {**document, "cells": cells}


def run_cell(cell: Document, names: dict[str, Any], runner: asyncio.Runner, count: int) -> list[Document]:
    tree = ast.parse("".join(cell["source"]))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        evaluate(compile(tree, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names, runner)
        if last is not None:
            assert isinstance(last, ast.Expr)
            expression = ast.Expression(last.value)
            value = evaluate(compile(expression, "<cell>", "eval", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names, runner)
    outputs: list[Document] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": lines_of(printed.getvalue())})
    pictures = [plt.figure(number) for number in plt.get_fignums()]
    if value is not None and not pictures:
        data = {"text/plain": lines_of(repr(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = lines_of(value._repr_html_())
        outputs.append({"output_type": "execute_result", "execution_count": count, "metadata": {}, "data": data})
    for picture in pictures:
        png = io.BytesIO()
        picture.savefig(png, format="png", dpi=80, metadata={"Software": None})
        data = {"image/png": base64.b64encode(png.getvalue()).decode(), "text/plain": ["<Figure>"]}
        outputs.append({"output_type": "display_data", "metadata": {}, "data": data})
    plt.close("all")
    return outputs


def evaluate(code: Any, names: dict[str, Any], runner: asyncio.Runner) -> Any:
    """Run what was compiled; wait for it where it has an `await`."""
    found = eval(code, names)  # noqa: S307 - the cells are ours
    if inspect.iscoroutine(found):

        async def waited() -> Any:
            return await found

        return runner.run(waited())
    return found


def lines_of(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def output_text(cell: Document) -> str:
    """All text of a cell's outputs."""
    parts = []
    for output in cell["outputs"]:
        parts += output.get("text", [])
        for kind, data in sorted(output.get("data", {}).items()):
            parts += data if kind.startswith("text/") else []
    return "".join(parts)


def main() -> None:
    for path in NOTEBOOKS:
        path.write_text(text_of(executed(read(path))), "utf-8")
        sys.stdout.write(f"{path.name}\n")


if __name__ == "__main__":
    main()
