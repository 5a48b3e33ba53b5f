"""Somebody else's protocol and theorem: a wheel of one module, installed beside p2pdp, of which no line is changed."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

from p2pdp.files.guide import page
from tests.support.sources import TOP

pytestmark = pytest.mark.slow

HERE = TOP / "tests" / "support" / "third_party"
ENTRY_POINTS = """[p2pdp.protocols]
drift.ring = ring_drift:PROTOCOL

[p2pdp.theorems]
drift_ring = ring_drift:ACCOUNTANT
"""
SPEC = """[run]
protocol = "drift.ring"
nodes = 4
seed = 1
patience_s = 3.0
[graph]
kind = "ring"
[noise]
mechanism = "gaussian"
sigma = 2.0
[data]
kind = "uniform"
clip = [0.0, 1.0]
[drift]
rounds = 2
[privacy]
delta = 1e-5
"""
LOCAL = 0.5  # the width of the bounds over sigma: what the next user learns from a noised value
PUBLIC = LOCAL * 2.0 / math.sqrt(1.0 + 4.0 + 1.0)  # the heaviest of the weights 1, 2, 1 in what is published
ALONE = LOCAL * 3.0 / math.sqrt(10.0)  # where user 2 is gone user 3 counts twice in each round: weights 1 and 3
ERROR = 2.0 * math.sqrt(1.0 + 4.0 + 1.0) / 4.0


def build_wheel(folder: Path) -> Path:
    """A wheel is an archive with the module, and three files that say what it is."""
    about = "ring_drift-1.0.dist-info"
    files = {
        "ring_drift.py": (HERE / "ring_drift.py").read_text(),
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: ring-drift\nVersion: 1.0\nRequires-Dist: p2pdp\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": ENTRY_POINTS,
    }
    lines = []
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(text.encode())}\n")
    place = folder / "ring_drift-1.0-py3-none-any.whl"
    with zipfile.ZipFile(place, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(f"{about}/RECORD", "".join([*lines, f"{about}/RECORD,,\n"]))
    return place


class Beside:
    """A fresh environment with that wheel, which sees p2pdp and the libraries of this one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        venv.create(folder / "env", with_pip=False)
        self.python = folder / "env" / "bin" / "python"
        site = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder / "env")}))
        seen = dict.fromkeys([str(TOP), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
        (site / "beside.pth").write_text("".join(f"{path}\n" for path in seen))
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "install", "--no-index", "--no-deps"]
        subprocess.run([*pip, "--quiet", str(build_wheel(folder))], check=True, timeout=120)
        (folder / "spec.toml").write_text(SPEC)

    def _run(self, *command: str) -> str:
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(
            [str(self.python), *command],
            cwd=self.folder, env=clean, capture_output=True, text=True, check=False, timeout=240,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def p2pdp(self, *words: str) -> Any:
        return json.loads(self._run("-m", "p2pdp", *words, "--json"))

    def plain(self, *words: str) -> str:
        return self._run("-m", "p2pdp", *words)

    def drive(self) -> Any:
        return json.loads(self._run(str(HERE / "drive.py"), "spec.toml"))


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Beside:
    made = Beside(tmp_path_factory.mktemp("beside"))
    made.ran = made.p2pdp("run", "spec.toml", "--out", "live")  # type: ignore[attr-defined]
    return made


def bounds(document: Any) -> dict[str, float]:
    """Mu of each claim that is a bound, by observer and method."""
    return {
        f"{one['observer']} {one['method']} {one['conditioning']}": one["mu_max"]
        for one in document["claims"]
        if one["bound"]
    }


AUDITED = {
    "node exact public": LOCAL,
    "curator exact public": PUBLIC,
    "public exact public": PUBLIC,
    "network exact public": LOCAL,
    "network local public": LOCAL,
}


def test_a_run_of_processes_gives_the_mean_and_its_error(beside: Beside) -> None:
    result = beside.ran  # type: ignore[attr-defined]
    assert result["standard_error"] == pytest.approx(ERROR)
    assert abs(result["error"]) < 6.0 * ERROR
    assert result["error"] == pytest.approx(result["estimate"] - result["truth"])
    assert result["nodes"] == 4
    assert result["missing"] == []


def test_it_is_verified_and_audited(beside: Beside) -> None:
    assert beside.p2pdp("verify", "live")["verified"] == "complete"
    assert bounds(beside.p2pdp("audit", "live")) == pytest.approx(AUDITED)


def test_it_is_planned(beside: Beside) -> None:
    planned = beside.p2pdp("plan", "spec.toml")
    assert bounds(planned) == pytest.approx({"network local a-priori": LOCAL})
    assert planned["standard_error"] == pytest.approx(ERROR)
    forecast = {one["observer"]: one["mu_max"] for one in planned["claims"] if not one["bound"]}
    assert forecast == pytest.approx({"node": LOCAL, "curator": PUBLIC, "public": PUBLIC, "network": LOCAL})


def test_it_is_attacked(beside: Beside) -> None:
    """User 3 hears of users 2 and 1, and what is published tells the rest: the noised values, and nothing better."""
    targets = beside.p2pdp("attack", "live", "--observer", "3")["targets"]
    assert [one["user"] for one in targets] == [0, 1, 2]
    for one in targets:
        assert one["noised_value_error_in_sigma"] == pytest.approx(0.0, abs=1e-9)
        assert 1e-6 < abs(one["error"]) < 12.0


def test_it_is_reported(beside: Beside) -> None:
    beside.p2pdp("audit", "live")
    text = (beside.folder / "live" / "report.html").read_text()
    assert "drift.ring" in text
    assert "rounds 2" in text


def test_its_theorem_is_an_accountant(beside: Beside) -> None:
    outputs = beside.p2pdp("account", "drift_ring", "span=1", "sigma=2", "rounds=2")["outputs"]
    assert outputs == pytest.approx({"mu_neighbour": LOCAL, "mu_public": PUBLIC})
    assert "drift_ring" in beside.plain("account", "--list")


def test_it_is_simulated_over_seeds_and_through_crashes(beside: Beside) -> None:
    found = beside.drive()
    assert math.sqrt(sum(off**2 for off in found["off"]) / len(found["off"])) < 2.0
    audited = {name.rpartition(" ")[0]: mu for name, mu in AUDITED.items()}
    for claims in found["back"]:
        assert claims == pytest.approx(audited)
    for claims in found["gone"]:
        assert claims["public exact"] == pytest.approx(ALONE)
        assert claims["node exact"] == pytest.approx(LOCAL)
        assert claims.get("network local", LOCAL) == pytest.approx(LOCAL)


def test_another_length_is_an_option_of_its_own(beside: Beside) -> None:
    planned = beside.p2pdp("plan", "spec.toml", "--set", "drift.rounds=1")
    assert planned["rounds"] == 1
    assert planned["standard_error"] == pytest.approx(2.0 * math.sqrt(2.0) / 2.0)


def test_the_guide_shows_this_module() -> None:
    assert (HERE / "ring_drift.py").read_text() in page("protocols").text
