from __future__ import annotations

import json
from pathlib import Path

import pytest

from p2pdp.cli.main import main


def keygen(*arguments: object) -> int:
    return main(["keygen", *map(str, arguments)])


def test_an_identity_as_ever(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert keygen("--out", tmp_path / "id", "--json") == 0
    assert set(json.loads(capsys.readouterr().out)) == {"identity", "folder"}
    assert keygen("--out", tmp_path / "other") == 0
    assert "identity" in capsys.readouterr().out


def test_an_auditors_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert keygen("--auditor", "--out", tmp_path / "a", "--json") == 0
    public = json.loads(capsys.readouterr().out)["auditor"]
    assert (tmp_path / "a" / "auditor.pub").read_text().strip() == public
    assert keygen("--auditor", "--out", tmp_path / "b") == 0
    assert "[audit] key" in capsys.readouterr().out
    assert keygen("--auditor", "--tls", "--out", tmp_path / "c") == 2


def test_all_that_a_broker_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "tls"
    assert keygen("--tls", "--out", out, "--name", "broker", "--user", "alice", "--nodes", 2, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document == {
        "folder": str(out),
        "names": ["broker"],
        "users": ["alice", "bootstrap", "node-0000", "node-0001"],
    }
    assert (out / "users" / "alice" / "password").is_file()
    assert keygen("--tls", "--out", tmp_path / "other", "--certificates", "--nodes", 1, "--port", 18883) == 0
    said = capsys.readouterr().out
    assert "mosquitto -c" in said
    assert "ca.key: stays with you" in said
    assert "listener 18883\n" in (tmp_path / "other" / "broker" / "mosquitto.conf").read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--name", "broker"), "only with --tls"),
        (("--nodes", "3"), "only with --tls"),
        (("--tls", "--nodes", "-1"), "--nodes"),
        (("--tls", "--port", "0"), "--port"),
        (("--tls", "--name", "a b"), "--name a b"),
        (("--tls", "--user", "a/b"), "--user a/b"),
    ],
)
def test_options_that_make_no_sense(
    tmp_path: Path, arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert keygen("--out", tmp_path / "out", *arguments) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
