"""Torch modules in runs on one machine: who loads torch, what samples and Python give, and that all of it repeats."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2pdp
from p2pdp.files.samples import SAMPLES
from p2pdp.files.spec import load_spec
from p2pdp.tasks.torch_models import digits_network
from tests.support.sources import TOP
from tests.support.torches import digits_here, torch_here

torch_here()

MODELS = SAMPLES / "models"
# Who holds torch in memory: the launcher at each event, and each node and role, which tells at its end.
WATCHED = """
import os, sys
from pathlib import Path
import p2pdp
from p2pdp.node.shell import HostShell

def tell(who):
    held = "libtorch" in Path("/proc/self/maps").read_text()
    os.write(1, f"{who} {'holds' if held else 'without'}\\n".encode())

def ended(shell, folder):
    tell(folder.name)
    write_totals(shell, folder)

def told(_event):
    tell("launcher")

write_totals, HostShell.write_totals = HostShell.write_totals, ended

p2pdp.run(p2pdp.load_spec(sys.argv[1], ["run.nodes=3", "walk.hops=6"]), sys.argv[2], on_event=told)
"""
AUDITED = """
import sys
import p2pdp
told = p2pdp.audit(sys.argv[1])
p2pdp.verify(sys.argv[1])
p2pdp.plan(sys.argv[2])
print(*sorted({str(claim.method) for claim in told.claims}), "torch" in sys.modules)
"""


def fresh(script: str, *arguments: object) -> str:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=True).stdout


def test_nobody_loads_torch_but_nodes_that_learn(tmp_path: Path) -> None:
    """Neither launcher nor bootstrap and curator while it runs, nor who plans, verifies or audits it afterwards."""
    sample = MODELS / "logistic.toml"
    told = set(fresh(WATCHED, sample, tmp_path / "run").splitlines())
    learners = {"0000 holds", "0001 holds", "0002 holds"}
    assert told == {"launcher without", "bootstrap without", "curator without", *learners}
    assert fresh(AUDITED, tmp_path / "run", sample).split() == ["local", "False"]
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["scores"]["public_score"] is not None
    with np.load(tmp_path / "run" / "state_dict.npz") as state:
        assert {name: state[name].shape for name in state.files} == {"weight": (1, 2), "bias": (1,)}


@pytest.mark.parametrize("name", ["digits", "logistic", "ratings"])
def test_samples_are_simulated_scored_and_repeat(name: str, tmp_path: Path) -> None:
    spec = load_spec(MODELS / f"{name}.toml")
    result = p2pdp.simulate(spec, tmp_path / "one")
    assert result.scores is not None
    assert result.scores["score_name"] == ("r2" if name == "ratings" else "accuracy")
    assert result.scores["public_score"] is not None
    assert (tmp_path / "one" / "state_dict.npz").is_file()
    if name != "digits":
        p2pdp.simulate(spec, tmp_path / "two")
        assert (tmp_path / "one" / "model.npz").read_bytes() == (tmp_path / "two" / "model.npz").read_bytes()
    methods = {claim.method for claim in p2pdp.audit(tmp_path / "one").claims}
    assert "iteration" not in methods
    assert methods


DIGITS: dict[str, Any] = {
    "run": {"protocol": "gossip.sgd", "nodes": 4},
    "graph": {"kind": "complete"},
    "gossip": {"rounds": 1},
    "noise": {"mechanism": "none"},
    "data": {"kind": "own", "clip": [0, 16]},
    "task": {"kind": "torch", "model": "p2pdp.tasks.torch_models:digits_network", "start": 1, "clip": 8.0, "rate": 0.1},
}


def test_the_sample_s_images_are_those_that_scikit_learn_ships() -> None:
    features, targets = digits_here()
    files = (MODELS / "digits.csv.gz", MODELS / "digits_public.csv.gz")
    table = np.concatenate([np.genfromtxt(file, delimiter=",", skip_header=1) for file in files])
    assert (table[:, 0] == targets).all()
    assert (table[:, 1:] == features).all()


def test_the_network_learns_digits_that_are_given_from_python(tmp_path: Path) -> None:
    """Without noise, from arrays; a few steps are enough to see that gradients point the right way."""
    features, targets = digits_here()
    spec = {**DIGITS, "task": {**DIGITS["task"], "rounds": 30, "test": 0.2}}
    result = p2pdp.simulate(spec, tmp_path / "run", data=(features[:800], targets[:800]), fast=False)
    assert result.scores is not None
    assert result.scores["test_score"] > 0.5
    module = p2pdp.load_state_dict(tmp_path / "run", digits_network(), user=2)
    torch = torch_here()
    told = module(torch.tensor(features[800:1200], dtype=torch.float32)).argmax(dim=1).numpy()
    assert float((told == targets[800:1200]).mean()) > 0.5, "on images that nobody learned from"


def test_a_module_of_the_caller_s_own_reaches_processes_by_being_forked(tmp_path: Path) -> None:
    """Also where the caller has used torch before, with all its threads."""
    torch = torch_here()
    torch.nn.Linear(300, 300)(torch.rand(300, 300)).sum().backward()
    spec = load_spec(MODELS / "logistic.toml", ["run.nodes=3", "walk.hops=6"])
    module = torch.nn.Linear(2, 1)
    result = p2pdp.run(spec, tmp_path / "run", task=p2pdp.torch_objective(module, "bce"))
    assert result.missing == []
    facts = json.loads((tmp_path / "run" / "roster.json").read_text())["facts"]
    assert facts["start"].startswith("sha256:")
    assert facts["objective"] == "torch"
    assert p2pdp.verify(tmp_path / "run").verified


def test_fresh_interpreters_find_the_module_by_its_name(tmp_path: Path) -> None:
    spec = load_spec(MODELS / "logistic.toml", ["run.nodes=2", "walk.hops=4"])
    result = p2pdp.run(spec, tmp_path / "run", spawn=True)
    assert result.missing == []
    assert result.scores is not None
