"""The image's packages: all pinned with hashes, as pyproject.toml asks for, and none that nobody asks for."""

from __future__ import annotations

import ast
import re
import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.locks import DEPLOY, locked
from tests.support.sources import TOP, sources

PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
LEFT_OUT = {"matplotlib", "networkx"}


def wanted() -> list[Requirement]:
    return [Requirement(text) for text in PROJECT["dependencies"]]


def test_what_the_project_needs_is_locked_within_its_bounds() -> None:
    found = locked("requirements.lock")
    for requirement in wanted():
        name = canonicalize_name(requirement.name)
        if name in LEFT_OUT:
            assert name not in found
            continue
        assert name in found, f"{name}: make the lock again, as deploy/overrides.txt says"
        assert all(requirement.specifier.contains(version) for version in found[name]), name


def test_nothing_is_locked_that_nobody_needs() -> None:
    """The lock says of each package for whose sake it is there."""
    packages = set(locked("requirements.lock"))
    for block in re.split(r"^(?=\w)", (DEPLOY / "requirements.lock").read_text(), flags=re.MULTILINE)[1:]:
        reasons = re.findall(r"^    #(?:   | via )(\S+)(?: \((\S+)\))?", block, re.MULTILINE)
        needed = [file.endswith("pyproject.toml") or canonicalize_name(name) in packages for name, file in reasons]
        assert any(needed), block[:80]


def test_what_overrides_the_newest_releases_is_within_what_the_project_allows() -> None:
    text = (DEPLOY / "overrides.txt").read_text()
    lines = [line.split(" #")[0] for line in text.splitlines() if not line.startswith("#")]
    found, allowed = locked("requirements.lock"), {canonicalize_name(each.name): each for each in wanted()}
    for override in map(Requirement, lines):
        assert override.name in allowed
        assert (override.marker is not None) == (override.name in LEFT_OUT)
        assert override.name in LEFT_OUT or all(
            override.specifier.contains(version) for version in found.get(override.name, ())
        )


def test_nothing_of_ours_imports_what_the_image_leaves_out() -> None:
    """What draws may: `reproduce` refuses to begin in a container, and results are plotted by users of Python."""
    removed = re.search(r"rm -rf (numpy(?:[^&]|\\\n)*)", (DEPLOY / "Dockerfile").read_text())
    assert removed is not None
    gone = {path.replace("/", ".") for path in removed[1].split() if re.fullmatch(r"[\w/]+", path)} | LEFT_OUT
    assert {"scipy.stats", "scipy.optimize", "networkx"} <= gone
    for source in sources("p2pdp"):
        if source.path.startswith(("p2pdp/experiments/", "p2pdp/report/display.py", "p2pdp/report/pictures.py")):
            continue
        for_types = {
            inner
            for node in source.nodes
            if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
            for inner in ast.walk(node)
        }
        for node in source.nodes:
            if node in for_types:
                continue
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            if isinstance(node, ast.ImportFrom):
                names = [str(node.module), *(f"{node.module}.{name}" for name in names)]
            for name in names:
                assert not any(name == part or name.startswith(f"{part}.") for part in gone), (source.path, name)


def test_the_build_is_locked_too() -> None:
    needed = tomllib.loads((TOP / "pyproject.toml").read_text())["build-system"]["requires"]
    found = locked("build.lock")
    for requirement in map(Requirement, needed):
        assert all(requirement.specifier.contains(version) for version in found[requirement.name])
