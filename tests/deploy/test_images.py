"""Base images can be named by digest, and a release cannot be built on one that is not."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.support.sources import TOP

DOCKERFILE = (TOP / "deploy" / "Dockerfile").read_text()
DIGEST = "python:3.11-slim-bookworm@sha256:" + "0f" * 32
CHECK = re.findall(r"^RUN (case .* esac)$", DOCKERFILE, re.MULTILINE)


def test_every_stage_is_built_on_the_argument() -> None:
    assert re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) == ["${BASE}", "${BASE}"]
    assert DOCKERFILE.index("ARG BASE=python:3.11-slim-bookworm\n") < DOCKERFILE.index("FROM ")


@pytest.mark.parametrize(
    ("release", "base", "code"),
    [
        ("", "python:3.11-slim-bookworm", 0),
        ("", DIGEST, 0),
        ("1", DIGEST, 0),
        ("1", "python:3.11-slim-bookworm", 1),
        ("1", "", 1),
        ("", "x", 0),
    ],
)
def test_a_release_needs_a_digest(release: str, base: str, code: int) -> None:
    (check,) = CHECK
    done = subprocess.run(["sh", "-c", check], env={"RELEASE": release, "BASE": base}, capture_output=True, check=False)
    assert (done.returncode, bool(done.stderr)) == (code, code == 1)


def test_no_digest_is_invented_and_other_images_can_be_named_by_one() -> None:
    """A digest in these files is whole; an image that is not ours is a variable."""
    for name in ("docker-compose.yml", "deploy/compose.tcp.yml", "deploy/Dockerfile"):
        text = (TOP / name).read_text()
        assert all(len(found) == 64 for found in re.findall(r"@sha256:([0-9a-f]+)", text))
        for image in re.findall(r"^\s*image: (\S+)", text, re.MULTILINE):
            assert image.startswith("${"), (name, image)
