"""Folders of nodes whose run is over."""

from __future__ import annotations

import shutil
from pathlib import Path

from p2pdp.api import simulate
from p2pdp.crypto.tokens import JoinToken
from p2pdp.files.keys import write_identity
from p2pdp.files.spec import parse_spec
from p2pdp.report.result import Result
from tests.support.across_specs import TEXT

ME = 2


def finished_node(tmp_path: Path, text: str = TEXT) -> Result:
    """The folder of a node that took part in a run as user `ME`, and its configuration."""
    result = simulate(parse_spec(text, tmp_path), tmp_path / "all")
    identity = write_identity(tmp_path / "id", bytes([1] * 32))
    token = JoinToken("boot:1", bytes(32), bytes(16), 5)
    (tmp_path / "node.toml").write_text(
        f'[node]\nidentity = "id/identity.key"\ntoken = "{token.to_text()}"\nlisten = "localhost:0"\n'
        '[data]\nkind = "uniform"\n'
    )
    place = tmp_path / "mine"
    shutil.copytree(tmp_path / "all" / "nodes" / f"{ME:04d}", place / "node")
    shutil.copy(tmp_path / "all" / "spec.toml", place)
    shutil.copy(tmp_path / "all" / "roster.json", place)
    (place / "node" / "seat").touch()
    (place / "node.json").write_text(f'{{"identity": "{identity}", "bootstrap": "{"00" * 32}", "token": 5}}')
    return result
