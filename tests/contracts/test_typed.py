"""Whoever checks types strictly finds ours: a small program of a user passes, and its mistakes are found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import asyncio
from pathlib import Path

import numpy as np

import p2pdp


def planned(epsilon: float) -> p2pdp.Spec:
    spec = p2pdp.spec({"run": {"protocol": "walk.sum", "nodes": 3}}, noise={"epsilon": epsilon})
    return p2pdp.spec(spec, **{"noise.delta": 1e-6})


async def main() -> None:
    result = await p2pdp.run_async(planned(1.0), Path("out"), data=np.ones(3))
    audited = await p2pdp.audit_async("out", colluders=[1, 2], delta=1e-5)
    epsilons: list[float | None] = [claim.epsilon_max for claim in audited.claims]
    seconds: float = result.seconds
    print(epsilons, seconds, audited.plot().get_title(), result.to_frame())
    plan = await p2pdp.plan_async("spec.toml", 1.0)
    records: int = p2pdp.verify("out").records
    print(plan.messages + records, p2pdp.account("gaussian", mu=1.0, delta=1e-5).outputs["epsilon"])


asyncio.run(main())
"""
WRONG = """
import p2pdp

p2pdp.run(3)
p2pdp.simulate("spec.toml", trails=3)
p2pdp.audit_async("out", delta="small")
p2pdp.verify("out").recrods
"""


def checked(folder: Path, text: str) -> list[str]:
    """Return the errors in a user's program; the package is the installed one, whose own errors mypy does not show."""
    (folder / "program.py").write_text(text)
    config = folder / "mypy.ini"
    config.write_text("[mypy]\nstrict = True\n[mypy-pandas.*,networkx.*,scipy.*]\nignore_missing_imports = True\n")
    command = [sys.executable, "-m", "mypy", "--config-file", str(config), "--cache-dir", str(folder / "cache")]
    done = subprocess.run(
        [*command, "--python-executable", sys.executable, "program.py"],
        cwd=folder, capture_output=True, text=True, check=False, timeout=400, env={"PATH": ""},
    )  # fmt: skip
    return [line for line in done.stdout.splitlines() if line.startswith("program.py") and "error" in line] or (
        [] if done.returncode == 0 else [done.stdout + done.stderr]
    )


def test_a_strict_program_passes_and_mistakes_are_found(tmp_path: Path) -> None:
    assert checked(tmp_path, PROGRAM) == []
    found = checked(tmp_path, WRONG)
    assert [line.split(":")[1] for line in found] == ["4", "5", "6", "6", "7"] or len(found) >= 4
