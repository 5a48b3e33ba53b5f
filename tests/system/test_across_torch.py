"""A torch module learned across machines: whose code each owner accepts by its digest, and what each node refuses."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

import p2pdp
from tests.support.across import SHARED, Across, Started
from tests.support.learners import RANGES, TABLE, learning
from tests.support.sources import TOP
from tests.support.torches import torch_here

torch_here()

# Whoever imports it leaves a mark; `first_weight` stands for a library that gives other first values elsewhere.
CODE = """
import os
from pathlib import Path
import torch

Path(__file__).with_name("imported").touch()

def network():
    module = torch.nn.Linear(2, 1)
    with torch.no_grad():
        module.weight[0, 0] = float(os.environ.get("FIRST_WEIGHT", "0.25"))
    return module
"""


class Program(Started):
    """One command in a fresh interpreter, which alone reads what PYTHONPATH says."""

    def __init__(self, place: Path, name: str, code: str, first_weight: str, *arguments: str) -> None:
        self.out, self.err = place / f"{name}.out", place / f"{name}.err"
        more = {"PYTHONPATH": os.pathsep.join((str(TOP), str(place / code))), "FIRST_WEIGHT": first_weight}
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(  # type: ignore[assignment]
                [sys.executable, "-P", "-m", "p2pdp", *arguments],
                cwd=place, stdout=out, stderr=err, env={**os.environ, **more},
            )  # fmt: skip


class Machines(Across):
    code, first_weight = "ours", "0.25"

    def start(self, name: str, *arguments: str, **_wishes: object) -> Started:
        process = Program(self.place, f"{name}-{len(self.started)}", self.code, self.first_weight, *arguments)
        self.started.append(process)
        return process

    def node_with(self, number: int, code: str = "ours", first_weight: str = "0.25") -> Started:
        self.code, self.first_weight = code, first_weight
        try:
            return self.node(number, *SHARED)
        finally:
            self.code, self.first_weight = "ours", "0.25"


def configured(place: Path, number: int, accept: str = "") -> None:
    lines = TABLE.read_text().splitlines()
    (place / f"own{number}.csv").write_text("\n".join([lines[0], *lines[1 + number * 20 : 21 + number * 20]]) + "\n")
    config = place / f"n{number}.toml"
    text = config.read_text().replace('kind = "uniform"', f'kind = "csv"\npath = "own{number}.csv"')
    config.write_text(text.partition("[accept]")[0] + accept)


def imported(place: Path, code: str) -> bool:
    return (place / code / "imported").exists()


def test_owners_accept_the_code_by_its_digest_and_other_code_is_refused(tmp_path: Path) -> None:
    for code, text in (("ours", CODE), ("theirs", f"{CODE}\n# another version\n"), ("untouched", CODE)):
        (tmp_path / code).mkdir()
        (tmp_path / code / "ourmodel.py").write_text(text)
    task = 'kind = "torch"\nmodel = "ourmodel:network"\nloss = "bce"\nclip = 1.0\nrate = 0.2'
    columns = f'{RANGES}\ncolumns = ["age", "dose"]'
    spec = learning(2, 12, task=task, data=columns).replace("seed = 3\n", "").replace(str(TABLE), "nobody.csv")
    with Machines(tmp_path, spec, 2) as run:
        for number in range(2):
            configured(tmp_path, number)
        boot = run.bootstrap()

        unasked = run.node_with(0, "untouched")
        unasked.fails(5, "[accept] model", "ourmodel:network with bce", "sha256:")
        assert not imported(tmp_path, "untouched"), "code that nobody accepted does not run"
        digest = re.findall(r"sha256:[0-9a-f]{64}", unasked.said)[-1]
        accept = f'[accept]\nmodel = "{digest}"\n'
        for number in range(2):
            configured(tmp_path, number, accept)

        run.node_with(1, "theirs").fails(5, "[accept] model", "this node accepts another")
        assert not imported(tmp_path, "theirs")

        nodes = [run.node_with(number) for number in range(2)]
        told = [node.document() for node in nodes]
        result = boot.document()
    assert f"code with the digest {digest}" in nodes[0].said
    assert {tuple(one["estimate"]) for one in told} == {tuple(result["estimate"])}
    assert {one["own_scores"]["loss"] > 0.0 for one in told} == {True}
    methods = {str(claim.method) for claim in p2pdp.audit(tmp_path / "boot").claims}
    assert methods
    assert "iteration" not in methods, "of a module nobody promises that it is convex"
    with np.load(tmp_path / "boot" / "state_dict.npz") as state:
        assert state["weight"].shape == (1, 2)
        assert [*state["weight"][0], state["bias"][0]] == result["estimate"]
    module = p2pdp.load_state_dict(tmp_path / "boot", torch_here().nn.Linear(2, 1))
    assert module.weight.tolist()[0] == [float(np.float32(one)) for one in result["estimate"][:2]]


def test_a_node_whose_model_starts_elsewhere_does_not_take_part(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "ourmodel.py").write_text(CODE)
    task = 'kind = "torch"\nmodel = "ourmodel:network"\nloss = "bce"\nclip = 1.0\nrate = 0.2'
    columns = f'{RANGES}\ncolumns = ["age", "dose"]'
    spec = learning(1, 4, task=task, data=columns, kind="complete").replace("seed = 3\n", "")
    with Machines(tmp_path, spec.replace(str(TABLE), "nobody.csv"), 1) as run:
        configured(tmp_path, 0)
        run.bootstrap()
        first = run.node_with(0)
        first.fails(5, "sha256:")
        configured(tmp_path, 0, f'[accept]\nmodel = "{re.findall(r"sha256:[0-9a-f]{64}", first.said)[-1]}"\n')
        run.node_with(0, first_weight="0.5").fails(5, "does not start with the values")
