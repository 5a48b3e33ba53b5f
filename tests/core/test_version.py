from __future__ import annotations

import tomllib

import p2pdp
from p2pdp.core.version import VERSION
from tests.support.sources import TOP


def test_the_version_is_that_of_the_project_file() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["project"]
    assert p2pdp.__version__ == VERSION == project["version"]
