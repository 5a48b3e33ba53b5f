"""Each work, and each numbered statement of it, that the package relies on has a test that cites it.

Statements are numbered theorems, algorithms and the like, cited in code or guide as [CB20, Theorem 3]. What only a
figure of a paper relies on is compared with that figure (`tests/experiments/`), and needs no test here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tests.support.sources import TOP, sources

CITATION = re.compile(r"(?<![\w\]])\[([A-Z]{1,6}\d\d),([^\]]*)\]")
KINDS = ("Theorem", "Lemma", "Proposition", "Corollary", "Definition", "Remark", "Algorithm", "Table")
WORK = re.compile(r"(?<![\w\]])\[([A-Z]{2,6}\d\d)\b")
STATEMENT = re.compile(rf"\b({'|'.join(KINDS)})s?\s+([\dA-Z][\w.]*(?:\s*(?:,|and|to)\s+\d[\w.]*)*)")
NUMBER = re.compile(r"(to\s+)?([\dA-Z][\w.]*)")


def statements(text: str) -> Iterator[tuple[str, str]]:
    """Yield work and statement of each citation; [LTT22, Theorems 5.3 to 5.5] names three."""
    for key, where in CITATION.findall(text):
        for kind, numbers in STATEMENT.findall(where):
            last = ""
            for to, number in NUMBER.findall(numbers):
                if number == "and":
                    continue
                for one in _between(last, number) if to else [number]:
                    yield key, f"{kind} {one}"
                last = number


def _between(first: str, last: str) -> list[str]:
    head, _, start = first.rpartition(".")
    prefix = f"{head}." if head else ""
    return [f"{prefix}{number}" for number in range(int(start) + 1, int(last.rpartition(".")[2]) + 1)]


def relied_on(cited: Callable[[str], Iterable[Any]], *, guide: bool) -> dict[Any, str]:
    """Return what the package cites, each with a place; the guide cites further works to read."""
    texts = {one.path: one.text for one in sources("p2pdp") if not one.path.startswith("p2pdp/experiments/")}
    if guide:
        pages = sorted((TOP / "p2pdp/guide").glob("*.md"))
        texts |= {f"p2pdp/guide/{page.name}": page.read_text("utf-8") for page in pages}
    return {said: path for path, text in reversed(texts.items()) for said in cited(text)}


def cited_by_tests(cited: Callable[[str], Iterable[Any]]) -> set[Any]:
    """Return what docstrings of test functions cite."""
    return {
        said
        for source in sources("tests")
        for node in source.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
        for said in cited(ast.get_docstring(node) or "")
    }


def test_each_statement_that_is_relied_on_has_a_test_that_cites_it() -> None:
    cited, known = relied_on(statements, guide=True), cited_by_tests(statements)
    assert len(cited) > 25
    assert [f"{path}: [{key}, {name}]" for (key, name), path in sorted(cited.items()) if (key, name) not in known] == []


def test_each_work_that_is_relied_on_has_a_test_that_cites_it() -> None:
    cited, known = relied_on(WORK.findall, guide=False), cited_by_tests(WORK.findall)
    assert len(cited) > 20
    assert [f"{path}: [{key}]" for key, path in sorted(cited.items()) if key not in known] == []


def test_what_a_citation_names_is_read() -> None:
    text = "[LTT22, Theorems 5.3 to 5.5], [CB20, Algorithm 2\nand Theorem 2], [CB20, Figure 3] and [CB20, section 4]"
    assert list(statements(text)) == [
        *(("LTT22", f"Theorem 5.{number}") for number in (3, 4, 5)),
        ("CB20", "Algorithm 2"),
        ("CB20", "Theorem 2"),
    ]
    assert list(statements("[LTT22, Algorithms 1, 2]")) == list(statements("[LTT22, Algorithms 1 and 2]"))
