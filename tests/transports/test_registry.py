from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from p2pdp.core.errors import UsageError
from p2pdp.core.installed import installed
from p2pdp.transports.registry import is_known, kind_of_address, machine_names, names, ours, transport_kind
from tests.support.local import SPEC
from tests.support.sources import TOP


def add(place: Path, entries: str) -> None:
    """Make a package be installed there, with these entry points."""
    made = place / "mail-1.0.dist-info"
    made.mkdir()
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: mail\nVersion: 1.0\n")
    (made / "entry_points.txt").write_text(f"[p2pdp.transports]\n{entries}\n")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    add(tmp_path, "mail = tests.support.third_party.mail:KIND\nwrong = tests.support.third_party.mail:KIND")
    monkeypatch.syspath_prepend(tmp_path)
    installed.cache_clear()
    yield tmp_path
    installed.cache_clear()


def test_each_kind_bears_the_name_it_is_found_by() -> None:
    assert ours() == ["tcp", "mqtt", "memory"]
    assert [transport_kind(name).name for name in ours()] == ours()
    assert machine_names() == ["tcp", "mqtt"]
    with pytest.raises(UsageError, match="tcp, mqtt, memory"):
        transport_kind("pigeon")


@pytest.mark.parametrize(
    ("address", "name"),
    [("boot:7", "tcp"), ("mqtts://b:1/r/s", "mqtt"), ("mqtt://", "mqtt"), ("http://b:1", "tcp"), ("", "tcp")],
)
def test_an_address_tells_its_kind(address: str, name: str) -> None:
    assert kind_of_address(address).name == name


def test_installed_packages_add_kinds(package: Path) -> None:
    assert is_known("mail")
    assert names() == ["tcp", "mqtt", "memory", "mail", "wrong"]
    assert transport_kind("mail").has_broker
    with pytest.raises(UsageError, match="calls itself 'mail' and not 'wrong'"):
        transport_kind("wrong")


def test_a_kind_that_stays_on_one_machine_says_so(package: Path) -> None:
    mail = transport_kind("mail")
    assert not mail.crosses_machines
    with pytest.raises(UsageError, match="mail does not reach other machines"):
        mail.check_bootstrap("box1")


@pytest.mark.parametrize("spawn", [False, True])
def test_somebody_elses_transport_carries_a_real_run(package: Path, spawn: bool) -> None:
    (package / "spec.toml").write_text(SPEC.replace("[run]\n", '[run]\ntransport = "mail"\n'))
    paths = os.pathsep.join((str(package), str(TOP)))
    done = subprocess.run(
        [sys.executable, "-m", "p2pdp", "run", "spec.toml", "--out", "run", "--json", *(["--spawn"] if spawn else [])],
        cwd=package,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads((package / "run" / "result.json").read_text())
    assert (result["transport"], result["hops"], result["missing"]) == ("mail", 6, [])
    audited = subprocess.run(
        [sys.executable, "-m", "p2pdp", "audit", "run", "--json"],
        cwd=package,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert audited.returncode == 0, audited.stderr
    observers = {claim["observer"] for claim in json.loads(audited.stdout)["claims"]}
    assert {"network", "broker"} <= observers
