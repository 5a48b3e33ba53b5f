"""Network shuffling across machines: what bootstrap signs of the graph is enough for nodes, budgets and claims."""

from __future__ import annotations

from pathlib import Path

import p2pdp
from tests.support.across import SHARED, Across
from tests.support.shuffle_specs import shuffle


def test_owners_report_what_is_in_their_own_files_within_their_budgets(tmp_path: Path) -> None:
    (tmp_path / "edges.txt").write_text("0 1\n1 2\n2 0\n2 3\n")
    text = shuffle(4, 'kind = "file"\npath = "edges.txt"', terms='rounds = "auto"').replace("seed = 1\n", "")
    text += f'[audit]\nkey = "{p2pdp.keygen(tmp_path / "auditor", auditor=True)}"\n'
    key = tmp_path / "auditor" / "auditor.key"
    with Across(tmp_path, text, 4) as run:
        for number in range(4):
            (tmp_path / f"own{number}.csv").write_text("1\n2\n")
            budget = f'[budget]\nepsilon = 3.1\ndelta = 1e-3\nobserver = "node"\nledger = "budget{number}"\n'
            config = tmp_path / f"n{number}.toml"
            data = f'kind = "csv"\npath = "own{number}.csv"\n{budget}'
            config.write_text(config.read_text().replace('kind = "uniform"\n', data))
        boot = run.bootstrap()
        told = [node.document() for node in run.all_nodes(*SHARED)]
        result = boot.document()
    assert {tuple(one["estimate"]) for one in told} == {tuple(result["estimate"])}
    assert result["truth"] is None
    assert "traffic" not in result, "only the auditor can read how much each user passed on"
    found = p2pdp.audit(tmp_path / "boot", key=key)
    assert ("curator", "shuffle") in {(claim.observer, claim.method) for claim in found.claims}
    assert found.verified == "complete"
    assert all((tmp_path / f"budget{number}").exists() for number in range(4))
