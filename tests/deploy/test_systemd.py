"""The units, as systemd itself reads and judges them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.missing import missing
from tests.support.sources import TOP

UNITS = ("p2pdp-bootstrap.service", "p2pdp-node@.service")
EXPOSURE_MAX = 1.5  # of 10, where 10 is everything


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """Copies that name a program which is here."""
    if shutil.which("systemd-analyze") is None:
        missing("install systemd, whose systemd-analyze reads units")
    for name in UNITS:
        text = (TOP / "deploy" / "systemd" / name).read_text()
        assert "/opt/p2pdp/bin/p2pdp " in text
        (tmp_path / name).write_text(text.replace("/opt/p2pdp/bin/p2pdp", "/bin/true"))
    return tmp_path


def analyze(*arguments: str) -> str:
    done = subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", UNITS)
def test_systemd_has_nothing_to_say_against_it(units: Path, name: str) -> None:
    assert analyze("verify", str(units / name)) == ""


@pytest.mark.parametrize("name", UNITS)
def test_it_is_confined(units: Path, name: str) -> None:
    said = analyze("security", "--offline=yes", "--no-pager", str(units / name))
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", said)
    assert found is not None
    assert float(found[1]) <= EXPOSURE_MAX


@pytest.mark.parametrize("name", UNITS)
def test_what_another_start_cannot_mend_is_not_started_again(units: Path, name: str) -> None:
    text = (units / name).read_text()
    assert "Restart=on-failure\n" in text
    assert "RestartPreventExitStatus=2 4 5\n" in text
    assert "SuccessExitStatus=130\n" in text


@pytest.mark.parametrize("name", UNITS)
def test_it_leaves_no_core_dump_and_no_open_folder(units: Path, name: str) -> None:
    lines = (units / name).read_text().splitlines()
    assert {"LimitCORE=0", "UMask=0077", "StateDirectoryMode=0700"} <= set(lines)
