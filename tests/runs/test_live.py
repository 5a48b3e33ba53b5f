from __future__ import annotations

from pathlib import Path

import pytest

from p2pdp.core.errors import NotReady, UsageError
from p2pdp.files.spec import parse_spec
from p2pdp.runs.live import resume, run_spec
from tests.node.local import SPEC


def test_what_cannot_run_live_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    mqtt = parse_spec(SPEC.replace("seed = 1", 'seed = 1\ntransport = "mqtt"'), tmp_path)
    with pytest.raises(NotReady, match="mqtt"):
        run_spec(mqtt, tmp_path / "run", lambda _event: None)
    csv = SPEC.replace('kind = "uniform"', 'kind = "csv"\npath = "d.csv"')
    with pytest.raises(UsageError, match="seed"):
        run_spec(parse_spec(csv, tmp_path), tmp_path / "run", lambda _event: None)
    assert not (tmp_path / "run").exists()


def test_only_a_live_run_can_be_resumed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not the folder of a live run"):
        resume(tmp_path, lambda _event: None)
