from __future__ import annotations

from typing import Any, cast

from p2pdp.core.spec import DataPart, GraphPart, NoisePart, RunPart, Spec, TaskPart
from p2pdp.ledger.evidence import Evidence
from p2pdp.ledger.records import LEDGER_MAGIC


def test_the_text_of_evidence_shows_no_ledger() -> None:
    spec = Spec(RunPart("walk.sum", 4), GraphPart("ring"), NoisePart("none"), DataPart("uniform"), TaskPart("sum"))
    roster = cast("Any", "the roster")
    evidence = Evidence(spec, b"digest", roster, {0: LEDGER_MAGIC + b"inside"}, {0: LEDGER_MAGIC + b"inside"})
    assert "inside" not in repr(evidence)
    assert "p2pdp ledger" not in repr(evidence)


def test_private_ledgers_need_not_be_at_hand() -> None:
    spec = Spec(RunPart("walk.sum", 4), GraphPart("ring"), NoisePart("none"), DataPart("uniform"), TaskPart("sum"))
    first, second = (Evidence(spec, b"digest", cast("Any", None), {}) for _ in range(2))
    assert (first.private, first.own) == ({}, None)
    assert first.private is not second.private
