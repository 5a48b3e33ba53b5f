from __future__ import annotations

import json
import subprocess
import sys

import pytest

from p2pdp.privacy.contract import names
from tests.support.forked import run


def p2pdp(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run("account", *arguments)


def test_a_document_and_nothing_else() -> None:
    done = p2pdp("gaussian", "sigma=1", "delta=1e-5", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["outputs"]["epsilon"] == pytest.approx(4.37717809568122, rel=1e-11)
    assert document["bound"] is True


def test_people_get_names_and_numbers() -> None:
    done = p2pdp("complete_sum", *"epsilon=0.1 delta=0 n=1000 hops=1000 delta_prime=1e-6 delta_hat=1e-6".split())
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].split()[0] == "epsilon"
    assert "no bound:" in lines
    assert any(line.startswith("source: ") for line in lines)


def test_the_list_names_all_with_one_line_each() -> None:
    done = p2pdp("--list")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(names())
    listed = json.loads(p2pdp("--list", "--json").stdout)["accountants"]
    assert [one["name"] for one in listed] == list(names())


def test_the_inputs_of_one_are_listed_too() -> None:
    lines = p2pdp("rdp_to_dp", "--list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["alpha", "rdp", "delta", "conversion"]
    assert "simple, tight" in lines[3]
    document = json.loads(p2pdp("rdp_to_dp", "--list", "--json").stdout)
    assert document["inputs"][0]["required"] is True


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("", 2, "--list"),
        ("gausian mu=1", 2, 'did you mean "gaussian"?'),
        ("gaussian mu=1 delt=1e-5", 2, "delt: "),
        ("gaussian mu=1", 2, "delta: missing"),
        ("gaussian mu=1 delta=nan", 2, "delta: nan "),
        ("gaussian mu 1", 2, "mu: inputs are written key=value"),
        ("gaussian mu=one delta=0.1", 2, "mu: 'one' "),
        ("ring_sum epsilon=1 delta=0 laps=1 delta_prime=1e-6 closing=no", 5, "closing draw"),
        ("gossip_table1 graph=ring n=16 alpha=2 sigma=1 weights=uniform", 5, "spectral gap is 0"),
    ],
)
def test_errors_are_one_line(line: str, code: int, said: str) -> None:
    done = p2pdp(*line.split())
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith("p2pdp: account")
    assert done.stderr.count("\n") == 1
    assert said in done.stderr


def test_a_simple_answer_loads_no_heavy_package() -> None:
    """What takes an interpreter long to load would be most of the answer's time."""
    script = (
        "import sys\nfrom p2pdp.cli.main import main\nmain(['account', 'gaussian', 'mu=1', 'delta=1e-5'])\n"
        "print(*(name for name in ('numpy', 'scipy', 'networkx', 'rich.table', 'nacl') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=240, check=True)
    assert done.stdout.splitlines()[-1] == ""
