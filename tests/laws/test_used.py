"""What the package defines, the package uses; what only tests use belongs to tests."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable

from tests.support.sources import Source, sources

# Users import or name these; and figures are found by the runner, whatever they are called.
PUBLIC = ("p2pdp/__init__.py", "p2pdp/api.py", "p2pdp/tasks/torch_models.py", "p2pdp/experiments/figures/")


def defined(source: Source) -> Iterable[tuple[ast.stmt, str]]:
    """The functions, classes and constants at the top of a module, but for those that a decorator hands on."""
    for node in source.tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            registered = any(isinstance(one, ast.Call) for one in node.decorator_list)
            if not registered or isinstance(node, ast.ClassDef):
                yield node, node.name
        elif isinstance(node, ast.Assign):
            yield from ((node, target.id) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node, node.target.id


def unused(modules: list[Source]) -> list[str]:
    words = Counter(word for module in modules for word in set(re.findall(r"\b\w+\b", module.text)))
    said = []
    for module in modules:
        own = Counter(re.findall(r"\b\w+\b", module.text))
        said += [
            module.say(node, f"{name} is used nowhere in the package")
            for node, name in defined(module)
            if own[name] == 1 and words[name] == 1 and not module.path.startswith(PUBLIC) and not name.startswith("__")
        ]
    return said


def test_the_package_uses_what_it_defines() -> None:
    assert unused(sources("p2pdp")) == []


def test_unused_names_are_seen() -> None:
    used = Source("p2pdp/core/x.py", "def one(): ...\nTWO = 2\nclass Three: ...\n@app.command()\ndef four(): ...\n")
    user = Source("p2pdp/core/y.py", "from p2pdp.core.x import one\nprint(one, TWO)\n")
    assert [text.split(": ")[1] for text in unused([used, user])] == ["Three is used nowhere in the package"]
    assert len(unused([used])) == 3
