"""What the law tests share: the project's files as syntax trees, and what a file mentions.

A checker is a function from one `Source` to sentences, one for each violation, so that each
law can be shown a bad source first: a law that finds nothing there proves nothing elsewhere.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
BUILTINS = frozenset(dir(builtins))


def room_within(parts: list[str]) -> str:
    """The room of a path or dotted name below p2pdp; the heavy half of protocols is a room of its own, `analysis`."""
    if parts[0] == "protocols" and ("analysis" in parts[2:] or parts[1:2] == ["defaults"]):
        return "analysis"
    return parts[0]


@dataclass(frozen=True)
class Source:
    """`path` is relative to the top of the repository, with forward slashes."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @property
    def room(self) -> str:
        """The folder below p2pdp/, or the module's name where it lies in p2pdp/ itself; see `room_within`."""
        return room_within(self.path.removesuffix(".py").split("/")[1:])

    @property
    def module(self) -> str:
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def say(self, node: ast.AST, what: str) -> str:
        return f"{self.path}:{getattr(node, 'lineno', 1)}: {what}"

    def targets(self, node: ast.Import | ast.ImportFrom) -> dict[str, str]:
        """The local names that an import binds, each with the dotted name of what it stands for."""
        if isinstance(node, ast.Import):
            return {
                (n.asname or n.name.split(".")[0]): (n.name if n.asname else n.name.split(".")[0]) for n in node.names
            }
        base = node.module or ""
        if node.level:
            package = self.module.split(".")
            steps_up = node.level - self.path.endswith("/__init__.py")
            base = ".".join([*package[: len(package) - steps_up], *([base] if base else [])])
        return {(name.asname or name.name): f"{base}.{name.name}" for name in node.names}

    @cached_property
    def aliases(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for node in self.nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                found |= self.targets(node)
        return found

    def origin(self, node: ast.AST) -> str:
        """Where a name comes from: after `import numpy as np`, `np.load` is `numpy.load`.

        A builtin is `builtins.open`; whatever is neither imported nor built in is "".
        """
        if isinstance(node, ast.Attribute):
            base = self.origin(node.value)
            return f"{base}.{node.attr}" if base else ""
        if not isinstance(node, ast.Name):
            return ""
        builtin = f"builtins.{node.id}" if node.id in BUILTINS else ""
        return self.aliases.get(node.id, builtin)

    @cached_property
    def mentions(self) -> list[tuple[ast.AST, str]]:
        """Every place that mentions something imported or built in, with its dotted name.

        Imports inside functions, and those for type checkers only, count like all others.
        """
        found: list[tuple[ast.AST, str]] = []
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found += [(node, name.name) for name in node.names]
            elif isinstance(node, ast.ImportFrom):
                found += [(node, target) for target in self.targets(node).values()]
            elif origin := self.origin(node):
                found.append((node, origin))
        return found


def within(dotted: str, name: str) -> bool:
    """Whether a dotted name is another one or lies below it."""
    return dotted == name or dotted.startswith(f"{name}.")


@lru_cache
def sources(folder: str) -> tuple[Source, ...]:
    """Every Python file below one of the top folders."""
    paths = sorted((TOP / folder).rglob("*.py"))
    return tuple(Source(path.relative_to(TOP).as_posix(), path.read_text("utf-8")) for path in paths)


def module_level(node: ast.AST) -> list[ast.stmt]:
    """The statements below a node that run when its module is imported, but for those only a type checker reads."""
    found: list[ast.stmt] = []
    children = ast.iter_child_nodes(node)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return found
    if isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}:
        children = iter(node.orelse)
    for child in children:
        found += [child] if isinstance(child, ast.stmt) else []
        found += module_level(child)
    return found
