"""A step that a machine returns is never dropped, whole or in part: whoever calls a machine acts on all it wants done.

Steps are joined with `Step.then`: a join by hand forgets a part as soon as the inner step begins to have it.
"""

from __future__ import annotations

import ast

import pytest

from tests.support.sources import Source, sources

# How many arguments each call of the machine contract has: calls of other things by these names have others.
ARGUMENTS = {"start": 2, "wake": 2, "excluded": 3, "receive": 4}


def returns_step(call: ast.Call) -> bool:
    arguments = [*call.args, *(word.value for word in call.keywords)]
    if isinstance(call.func, ast.Name):
        return call.func.id == "tell"
    if not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr == "tell":  # a file's tell() has no arguments
        return bool(arguments)
    timed = any(word.arg == "now_s" for word in call.keywords) or any(
        ast.unparse(argument).endswith("now_s") for argument in arguments
    )
    wanted = ARGUMENTS.get(call.func.attr)
    return wanted is not None and (timed or len(arguments) == wanted)


def expected_to_raise(tree: ast.Module) -> set[ast.AST]:
    """The statements of `with pytest.raises(...)` blocks, which get no step to drop."""
    return {
        inside
        for node in ast.walk(tree)
        if isinstance(node, ast.With) and "pytest.raises(" in ast.unparse(node.items[0])
        for inside in node.body
    }


def dropped_steps(source: Source) -> list[str]:
    raising = expected_to_raise(source.tree)
    said = []
    for node in source.nodes:
        bare = isinstance(node, ast.Expr) or (
            isinstance(node, ast.Assign) and all(isinstance(to, ast.Name) and to.id == "_" for to in node.targets)
        )
        if bare and isinstance(node.value, ast.Call) and returns_step(node.value) and node not in raising:
            said.append(source.say(node, f"the step of {ast.unparse(node.value.func)}(...) is dropped"))
    return said


PARTS = {"sends", "wake_at_s", "outputs", "faults"}


def joined_by_hand(source: Source) -> list[str]:
    """Parts of a step that go into another step, or are added to a list of what will."""
    said = []
    for node in source.nodes:
        taken: list[ast.AST] = []
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called == "Step" or called.endswith((".Step", "._replace", ".extend")):
                taken = [*node.args, *(word.value for word in node.keywords)]
        elif isinstance(node, ast.AugAssign):
            taken = [node.value]
        said += [
            source.say(node, f"takes {part.attr} out of a step; join whole steps with Step.then")
            for tree in taken
            for part in ast.walk(tree)
            if isinstance(part, ast.Attribute)
            and part.attr in PARTS
            and ast.unparse(part.value) not in ("self", "other")
        ]
    return said


def test_no_steps_are_joined_by_hand() -> None:
    assert [text for source in sources("p2pdp") for text in joined_by_hand(source)] == []


@pytest.mark.parametrize(
    "text",
    [
        "Step((*sends, *step.sends), step.wake_at_s)",
        "Step(sends=(*spared, *self._over().sends))",
        "step._replace(sends=(*step.sends, answer))",
        "sends += self._go(draws).sends",
        "outputs.extend(machine.wake(now_s, draws).outputs)",
    ],
)
def test_a_join_by_hand_is_seen(text: str) -> None:
    assert joined_by_hand(Source("p2pdp/peer/x.py", text))


@pytest.mark.parametrize(
    "text", ["Step((answer,)).then(step)", "for send in step.sends:\n    carry(send)", "f(step.sends)"]
)
def test_a_step_that_is_joined_whole_is_not_accused(text: str) -> None:
    assert joined_by_hand(Source("p2pdp/peer/x.py", text)) == []


def test_no_step_is_dropped() -> None:
    assert [text for source in sources("p2pdp") + sources("tests") for text in dropped_steps(source)] == []


@pytest.mark.parametrize(
    "text",
    [
        "machine.start(0.0, draws)",
        "machine.start(now_s, draws)",
        "self.machine.wake(self.now_s, draws=draws)",
        "machines[3].receive(1, message, 2.5, draws)",
        "machine.receive(**words, now_s=3)",
        "machine.excluded(3, now_s, draws)",
        "tell(machine, Started(), 0.0, draws)",
        "events.tell(machine, event, now_s, draws)",
        "_ = machine.start(0.0, draws)",
        "def f():\n    for now_s in range(3):\n        machine.wake(now_s, draws)",
    ],
)
def test_a_dropped_step_is_seen(text: str) -> None:
    assert len(dropped_steps(Source("p2pdp/peer/x.py", text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "step = machine.start(now_s, draws)",
        "assert machine.wake(0.0, draws) == NOTHING",
        "act(tell(machine, event, now_s, draws))",
        "with pytest.raises(UsageError):\n    machine.start(0.0, draws)",
        "thread.start()",
        "stream.tell()",
        "def f():\n    return machine.start(0.0, draws)",
    ],
)
def test_a_step_that_is_used_is_not_accused(text: str) -> None:
    assert dropped_steps(Source("tests/peer/test_x.py", text)) == []
