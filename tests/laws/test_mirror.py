"""Each module has a test file of its own at the same path, and each such file has a module."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tests.support.sources import Source, sources, within

if TYPE_CHECKING:
    from collections.abc import Iterable

# Tests of what no single module does.
ACROSS = ("laws", "contracts", "vectors", "scenarios", "system", "deploy", "campaigns")
SCRIPT = "tests/contracts/frozen.py"  # is also run by hand
THIRD_PARTY = "tests/system/third_party/"  # what a test installs
CAMPAIGNS = "tests/campaigns/"  # a program of its own, with its tests


def mirror(path: str) -> str:
    """The test file of p2pdp/a/b.py is tests/a/test_b.py."""
    folder, _, name = path.removeprefix("p2pdp/").rpartition("/")
    return f"tests/{folder}/test_{name}" if folder else f"tests/test_{name}"


def has_tests(source: Source) -> bool:
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
        for node in source.nodes
    )


def shared(module: Source, tests: Iterable[Source]) -> bool:
    """An accountant may be tested in the file of its protocol; the entries of analyses are under one contract."""
    if module.room == "analysis":
        contract = [test for test in tests if test.path == "tests/contracts/test_analysis.py"]
        return any(within(name, module.module) for test in contract for _, name in test.mentions)
    return module.room == "privacy" and any(
        has_tests(test) and any(within(name, module.module) for _, name in test.mentions)
        for test in tests
        if test.path.startswith("tests/protocols/test_")
    )


def untested(modules: Iterable[Source], tests: Iterable[Source]) -> list[str]:
    by_path = {test.path: test for test in tests}
    said = []
    for module in modules:
        if module.path.endswith(("/__init__.py", "/__main__.py")) or shared(module, by_path.values()):
            continue
        test = by_path.get(mirror(module.path))
        if test is None:
            said.append(f"{module.path} has no {mirror(module.path)}")
        elif not has_tests(test):
            said.append(f"{test.path} holds no test function")
    return said


def orphaned(modules: Iterable[Source], tests: Iterable[Source]) -> list[str]:
    expected = {mirror(module.path) for module in modules}
    return [
        f"{test.path} mirrors no module"
        for test in tests
        if test.path.rpartition("/")[2].startswith("test_")
        and test.path.split("/")[1] not in ACROSS
        and test.path not in expected
    ]


def strays(tests: Iterable[Source]) -> list[str]:
    """Helpers of tests lie in one folder."""
    return [
        f"{test.path} belongs in tests/support/"
        for test in tests
        if not test.path.startswith(("tests/support/", "tests/vectors/", THIRD_PARTY, CAMPAIGNS))
        and not test.path.rpartition("/")[2].startswith(("test_", "__init__", "conftest"))
        and test.path != SCRIPT
    ]


def borrowed(tests: Iterable[Source]) -> list[str]:
    """Tests import helpers that exist, and nothing from each other."""
    known = {test.module for test in tests if test.path.startswith("tests/support/") or test.path == SCRIPT}
    program = {test.module for test in tests if test.path.startswith(CAMPAIGNS)}
    return [
        test.say(node, f"{name} is no helper in tests/support/")
        for test in tests
        for node, name in test.mentions
        if isinstance(node, ast.Import | ast.ImportFrom)
        and name.startswith("tests.")
        and not any(within(name, one) for one in (known | program if test.path.startswith(CAMPAIGNS) else known))
    ]


def test_each_module_has_its_tests() -> None:
    assert untested(sources("p2pdp"), sources("tests")) == []


def test_each_test_file_has_its_module() -> None:
    assert orphaned(sources("p2pdp"), sources("tests")) == []


def test_paths_are_mirrored() -> None:
    assert mirror("p2pdp/a/b.py") == "tests/a/test_b.py"
    assert mirror("p2pdp/a/b/c.py") == "tests/a/b/test_c.py"
    assert mirror("p2pdp/api.py") == "tests/test_api.py"


def test_a_missing_an_empty_and_an_orphaned_file_are_seen() -> None:
    module = Source("p2pdp/core/x.py", "a = 1\n")
    filled = Source("tests/core/test_x.py", "class TestX:\n    def test_a(self): ...\n")
    empty = Source("tests/core/test_x.py", '"""Will test."""\n\ndef helper(): ...\n')
    elsewhere = Source("tests/wire/test_x.py", filled.text)
    assert untested([module], [filled]) == []
    assert untested([module], []) == untested([module], [elsewhere]) == ["p2pdp/core/x.py has no tests/core/test_x.py"]
    assert untested([module], [empty]) == ["tests/core/test_x.py holds no test function"]
    assert orphaned([module], [filled, elsewhere]) == ["tests/wire/test_x.py mirrors no module"]
    assert orphaned([module], [Source("tests/laws/test_y.py", ""), Source("tests/conftest.py", "")]) == []


def test_an_accountant_may_share_the_file_of_its_protocol() -> None:
    accountant = Source("p2pdp/privacy/ring.py", "a = 1\n")
    machine = Source("p2pdp/protocols/ring.py", "a = 1\n")
    alone = Source("tests/protocols/test_ring.py", "def test_a(): ...\n")
    both = Source("tests/protocols/test_ring.py", "from p2pdp.privacy.ring import a\ndef test_a(): ...\n")
    assert untested([accountant, machine], [both]) == []
    assert untested([accountant, machine], [alone]) == ["p2pdp/privacy/ring.py has no tests/privacy/test_ring.py"]


def test_helpers_are_in_one_place() -> None:
    assert strays(sources("tests")) == []


def test_tests_import_nothing_but_helpers() -> None:
    assert borrowed(sources("tests")) == []


def test_a_stray_helper_and_borrowed_names_are_seen() -> None:
    helper = Source("tests/support/a.py", "b = 1\n")
    stray = Source("tests/core/a.py", "b = 1\n")
    good = Source("tests/core/test_x.py", "from tests.support.a import b\nfrom tests.support import a\n")
    bad = Source("tests/core/test_y.py", "from tests.core.test_x import c\nfrom tests.support import gone\n")
    assert strays([helper, stray, good, bad]) == ["tests/core/a.py belongs in tests/support/"]
    assert borrowed([helper, good]) == []
    assert [one.split(": ")[0] for one in borrowed([helper, good, bad])] == [
        "tests/core/test_y.py:1",
        "tests/core/test_y.py:2",
    ]
