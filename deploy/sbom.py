"""The software bill of materials of the wheel: a build hook of Hatch, run by every build.

It puts `p2pdp.cdx.json` (CycloneDX 1.6) into the wheel's `.dist-info/sboms/` (PEP 770). Components are the packages of
`requirements.lock`, with which the container image is built; what an installation by pip takes instead is within the
ranges of the property `p2pdp:requirement`. What the image leaves out has no version (`overrides.txt`). The document
follows from pyproject.toml, the lock and the overrides alone, so it cannot be older than they are, and equal sources
make equal bytes.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCK = "deploy/requirements.lock"
OVERRIDES = "deploy/overrides.txt"
_PINNED = re.compile(r"([\w.-]+)==([^\s;]+)(?: ; (.*?))? \\?$")


class SbomHook(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        core = self.metadata.core
        document = bill(
            core.name,
            self.metadata.version,
            core.description,
            core.dependencies,
            Path(self.root, LOCK).read_text(),
            left_out_in(Path(self.root, OVERRIDES).read_text()),
        )
        self._scratch = tempfile.TemporaryDirectory()  # until Hatch has packed it
        file = Path(self._scratch.name) / f"{core.name}.cdx.json"
        file.write_text(json.dumps(document, indent=1) + "\n")
        build_data["sbom_files"].append(str(file))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._scratch.cleanup()


def left_out_in(overrides: str) -> set[str]:
    """Return the packages that the image leaves out: their overrides are for a Python that nobody has."""
    found = [Requirement(line.split(" #")[0]) for line in overrides.splitlines() if not line.startswith("#")]
    return {canonicalize_name(one.name) for one in found if one.marker and not one.marker.evaluate()}


def bill(
    name: str, version: str, description: str, dependencies: list[str], lock: str, left_out: set[str]
) -> dict[str, Any]:
    """Return the document for a package with these dependencies and the text of its lock, which leaves some out."""
    ranges = {canonicalize_name(one.name): one for one in map(Requirement, dependencies)}
    components, parents = [], dict[str, list[str]]()
    for block in re.split(r"^(?=\w)", lock, flags=re.MULTILINE)[1:]:
        pinned = _PINNED.match(block.partition("\n")[0])
        if pinned is None:
            raise ValueError(f"{LOCK}: cannot be read: {block.partition(chr(10))[0]}")
        package, release, marker = canonicalize_name(pinned[1]), pinned[2], pinned[3]
        reference = f"pkg:pypi/{package}@{release}"
        properties = {"p2pdp:marker": marker, "p2pdp:requirement": str(ranges.get(package, "")) or None}
        components.append(
            {
                "type": "library",
                "bom-ref": reference,
                "name": package,
                "version": release,
                "purl": reference,
                "properties": [{"name": key, "value": value} for key, value in properties.items() if value],
            }
        )
        for parent in re.findall(r"^    #(?:   | via )(\S+)", block, re.MULTILINE):
            parents.setdefault(canonicalize_name(parent), []).append(reference)
    for package in sorted(ranges.keys() - {one["name"] for one in components}):
        if package not in left_out:
            raise ValueError(f"{LOCK}: lacks {package}; {OVERRIDES} says how to make it again")
        reference = f"pkg:pypi/{package}"
        components.append(
            {
                "type": "library",
                "bom-ref": reference,
                "name": package,
                "purl": reference,
                "properties": [{"name": "p2pdp:requirement", "value": str(ranges[package])}],
            }
        )
        parents.setdefault(canonicalize_name(name), []).append(reference)
    own = f"{name}@{version}"
    references = {own: name} | {one["bom-ref"]: one["name"] for one in components}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "lifecycles": [{"phase": "build"}],
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": name,
                "version": version,
                "description": description,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": components,
        "dependencies": [
            {"ref": reference, "dependsOn": sorted(parents.get(package, []))}
            for reference, package in references.items()
        ],
    }
