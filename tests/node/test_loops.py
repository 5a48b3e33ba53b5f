from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import uvloop

from p2pdp.node.loops import new_event_loop
from tests.support.small import RING, spec_file
from tests.support.sources import TOP

# Kinds of loops are told from where they are made; children inherit the wrapper by being forked.
WITHOUT = """
import asyncio, os, sys
lacking, file, out, kinds = sys.argv[1:]
if "uvloop" in lacking:
    sys.modules["uvloop"] = None
if "waitid" in lacking:
    del os.waitid
real = asyncio.Runner.get_loop
def told(runner):
    loop = real(runner)
    with open(kinds, "a") as file:
        print(type(loop).__module__, file=file)
    return loop
asyncio.Runner.get_loop = told
from p2pdp.cli.main import main
sys.exit(main(["run", file, "--out", out, "--json"]))
"""


def _run(folder: Path, lacking: str) -> tuple[dict[str, object], set[str]]:
    folder.mkdir()
    command = [sys.executable, "-c", WITHOUT, lacking, str(spec_file(folder, RING)), str(folder / "out")]
    done = subprocess.run(
        [*command, str(folder / "kinds")], cwd=TOP, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), set((folder / "kinds").read_text().split())


def test_it_is_uvloop_s_where_that_is_installed() -> None:
    loop = new_event_loop()
    loop.close()
    assert isinstance(loop, uvloop.Loop)


def test_a_live_run_needs_neither_uvloop_nor_what_only_linux_has(tmp_path: Path) -> None:
    result, kinds = _run(tmp_path / "bare", "uvloop waitid")
    assert {kind.partition(".")[0] for kind in kinds} == {"asyncio"}
    assert result["missing"] == []
    assert result["faults"] == {}
    fast, kinds = _run(tmp_path / "fast", "")
    assert {kind.partition(".")[0] for kind in kinds} == {"uvloop"}
    assert fast["truth"] == result["truth"]
