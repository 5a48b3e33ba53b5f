"""`p2pdp plan` as people and programs see it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from p2pdp.cli.main import main
from tests.support import small
from tests.support.gossips import gossip
from tests.support.pairwise_world import pairwise


@pytest.mark.parametrize("name", sorted(small.ALL))
def test_a_plan_is_one_document_or_a_text(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(small.spec_file(tmp_path, small.ALL[name]))
    assert main(["plan", path, "--json"]) == 0
    told = capsys.readouterr()
    document = json.loads(told.out)
    assert (document["protocol"], told.err) == ("walk.histogram" if "histogram" in name else "walk.sum", "")
    assert main(["plan", path]) == 0
    shown = capsys.readouterr().out
    assert "nothing was executed" in shown
    assert "standard error" in shown
    for claim in document["claims"]:
        assert claim["observer"] in shown
    assert sorted(tmp_path.iterdir()) == [tmp_path / "spec.toml"]


def test_the_target_is_a_sentence_with_safe_digits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, parameter in (("ring", "sigma"), ("ring_histogram", "epsilon")):
        path = str(small.spec_file(tmp_path, small.ALL[name]))
        assert main(["plan", path, "--target-epsilon", "1", "--json"]) == 0
        value = json.loads(capsys.readouterr().out)["target"]["value"]
        assert main(["plan", path, "--target-epsilon", "1"]) == 0
        words = " ".join(capsys.readouterr().out.split())
        shown = float(words.partition(f"[noise] {parameter} = ")[2].split()[0])
        assert (value <= shown) if parameter == "sigma" else (shown <= value)
        assert shown == pytest.approx(value, rel=1e-5)
        assert "Local DP would need" in words
        key = f"noise.{parameter}={shown}"
        assert main(["plan", path, "--set", key, "--json"]) == 0
        claim = json.loads(capsys.readouterr().out)["claims"][0]
        assert claim["observer"] == "node"
        assert claim["epsilon_max"] <= 1.0


def test_what_cannot_be_met_and_what_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(small.spec_file(tmp_path))
    assert main(["plan", path, "--set", "noise.closing=false", "--target-epsilon", "1"]) == 5
    told = capsys.readouterr()
    assert told.out == ""
    assert "cannot be met" in told.err
    assert main(["plan", path, "--target-epsilon", "0"]) == 2
    assert main(["plan", path, "--set", "noise.sigma=-1"]) == 2
    assert main(["plan", str(tmp_path / "none.toml")]) == 2


@pytest.mark.parametrize("command", ["simulate", "run"])
def test_a_budget_in_the_spec_ends_a_local_run_before_it_starts(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(small.spec_file(tmp_path, small.COMPLETE))
    out = tmp_path / "out"
    assert main([command, path, "--set", "privacy.budget=1.0", "--out", str(out)]) == 5
    told = capsys.readouterr()
    assert told.err.startswith("p2pdp: [privacy] budget: ")
    assert told.err.count("\n") == 1
    assert not out.exists()


def test_a_budget_that_is_enough_is_no_obstacle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(small.spec_file(tmp_path, small.COMPLETE))
    assert main(["simulate", path, "--set", "privacy.budget=100", "--out", str(tmp_path / "out"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["nodes"] == 5


def test_the_plan_of_gossip_shows_what_noise_on_messages_would_buy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(small.spec_file(tmp_path, gossip(8, "ring", "rounds = 4\nmessage_sigma = 0.5")))
    assert main(["plan", path]) == 0
    shown = capsys.readouterr().out
    assert "Noise on messages" in shown
    assert "message_sigma" in shown
    assert " 0.25 " in shown, "that of the spec"
    assert "Recommended: message_sigma = 0." in shown
    assert "a forecast" in shown
    assert main(["plan", str(small.spec_file(tmp_path, small.RING))]) == 0
    assert "Noise on messages" not in capsys.readouterr().out


def test_the_plan_of_a_pairwise_sum_has_an_outlook(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(small.spec_file(tmp_path, pairwise(12, privacy="delta = 1e-5\ncolluders_max = 2")))
    assert main(["plan", path, "--json"]) == 0
    outlook = json.loads(capsys.readouterr().out)["outlook"]
    assert outlook["hidden"] == 6
    assert outlook["sigma"] == pytest.approx(1.0)
    assert main(["plan", path]) == 0
    assert "honest users who hide each other if 8 are left" in capsys.readouterr().out
    assert main(["plan", path, "--target-epsilon", "0.5"]) == 0
    assert "against the curator and its colluders" in " ".join(capsys.readouterr().out.split())
