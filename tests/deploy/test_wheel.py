"""The wheel: equal sources make equal bytes, and it says what it needs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from trove_classifiers import classifiers

from tests.support.locks import locked
from tests.support.sources import TOP

PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]


def build(place: Path, mask: int, stamp_s: int) -> Path:
    """Copy what git tracks, or would by `git add`, and build a wheel of it; return the wheel."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=TOP, capture_output=True, text=True, check=True).stdout.split("\0")
    source = place / "source"
    for name in filter(lambda name: name and (TOP / name).is_file(), names):
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(TOP / name, target)
        target.chmod(0o666 & ~mask)
        os.utime(target, (stamp_s, stamp_s))
    (source / "p2pdp" / "__pycache__").mkdir()
    (source / "p2pdp" / "__pycache__" / "api.pyc").write_bytes(bytes([mask]))  # is in no wheel
    environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place / "made")]
    subprocess.run(command, cwd=source, env=environment, umask=mask, capture_output=True, check=True, timeout=120)
    (wheel,) = (place / "made").glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two wheels, of different folders, times and masks."""
    made = [(0o022, 1_000_000_000), (0o077, 1_700_000_001)]
    return [build(tmp_path_factory.mktemp(f"wheel{mask}"), mask, stamp_s) for mask, stamp_s in made]


@pytest.fixture(scope="module")
def held(wheels: list[Path]) -> dict[str, bytes]:
    with zipfile.ZipFile(wheels[0]) as archive:
        return {name.partition(".dist-info/")[2] or name: archive.read(name) for name in archive.namelist()}


def test_equal_sources_make_equal_bytes(wheels: list[Path]) -> None:
    assert wheels[0].name == wheels[1].name
    assert wheels[0].read_bytes() == wheels[1].read_bytes()


def test_what_the_package_reads_is_in_it_and_nothing_made(held: dict[str, bytes]) -> None:
    assert {"p2pdp/CITATION.cff", "p2pdp/py.typed", "p2pdp/guide/changelog.md", "licenses/LICENSE"} <= held.keys()
    assert not [name for name in held if "__pycache__" in name or name.startswith("tests/")]


def test_metadata_are_known_and_name_extras_but_no_address(held: dict[str, bytes]) -> None:
    told = message_from_bytes(held["METADATA"])
    assert set(told.get_all("Classifier", [])) <= classifiers
    assert told["License-Expression"] == "Apache-2.0"
    assert told["Author"] == "p2pdp maintainers"
    assert set(told.get_all("Provides-Extra", [])) == PROJECT["optional-dependencies"].keys()
    assert told["Project-URL"] is told["Home-page"] is None
    (loop,) = (one for one in map(Requirement, told.get_all("Requires-Dist", [])) if one.name == "uvloop")
    assert loop.marker is not None
    assert not loop.marker.evaluate({"sys_platform": "win32"})
    assert loop.marker.evaluate({"sys_platform": "darwin"})


def test_the_bill_of_materials_is_the_lock(held: dict[str, bytes]) -> None:
    (name,) = (name for name in held if name.startswith("sboms/"))
    bill = json.loads(held[name])
    assert (name, bill["bomFormat"], bill["specVersion"]) == ("sboms/p2pdp.cdx.json", "CycloneDX", "1.6")
    assert bill["metadata"]["component"]["version"] == PROJECT["version"]
    found: dict[str, list[str]] = {}
    for one in bill["components"]:
        release = f"@{one['version']}" if "version" in one else ""
        assert one["purl"] == f"pkg:pypi/{one['name']}{release}"
        found.setdefault(one["name"], []).extend([one["version"]] if release else [])
    assert [name for name, versions in found.items() if not versions] == ["matplotlib", "networkx"]
    assert {name: versions for name, versions in found.items() if versions} == locked("requirements.lock")


def test_the_bill_leads_from_the_package_to_each_component(held: dict[str, bytes]) -> None:
    bill = json.loads(held["sboms/p2pdp.cdx.json"])
    names = {one["bom-ref"]: one["name"] for one in bill["components"]}
    needs = {one["ref"]: one["dependsOn"] for one in bill["dependencies"]}
    own = bill["metadata"]["component"]["bom-ref"]
    assert {names[one] for one in needs[own]} == {
        canonicalize_name(Requirement(text).name) for text in PROJECT["dependencies"]
    }
    reached, left = set[str](), [own]
    while left:
        reached.add(one := left.pop())
        left += [other for other in needs[one] if other not in reached]
    assert reached == {own, *names}
