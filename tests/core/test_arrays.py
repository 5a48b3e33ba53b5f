from __future__ import annotations

import ast

from tests.support.sources import Source, sources


def aliases(source: Source) -> list[str]:
    """The array types that a module names for itself although `core.arrays` names them."""
    return [
        source.say(node, "import it from p2pdp.core.arrays")
        for node in source.tree.body
        if isinstance(node, ast.Assign)
        and ast.unparse(node.value)
        in {f"npt.NDArray[np.{number}]" for number in ("float64", "int64", "bool_", "complex128")}
    ]


def test_array_types_are_named_once() -> None:
    said = [text for source in sources("p2pdp") for text in aliases(source)]
    assert {text.split(":")[0] for text in said} == {"p2pdp/core/arrays.py"}
    assert len(said) == 4
