"""A consortium across machines: each owner has a file of its own and states how many rows it has; each is protected."""

from __future__ import annotations

import shutil
from pathlib import Path

import p2pdp
from p2pdp.files.samples import SAMPLES, sample
from tests.support.across import SHARED, Across

CLINICS = sample("clinics").text
LIMITS = '[accept]\nepsilon_max = 3.0\nunit = "record"\nclip = [0.0, 24.0]\n'


def prepared(run: Across, place: Path, limits: str = LIMITS) -> list[list[float]]:
    tables = []
    for number in range(run.nodes):
        own = place / f"own{number}.csv"
        shutil.copy(SAMPLES / "nodes" / "clinics" / f"{number + 1}.csv", own)
        tables.append([float(line) for line in own.read_text().split()[1:]])
        config = place / f"n{number}.toml"
        data = f'kind = "csv"\npath = "own{number}.csv"\ncolumns = ["hours"]\n{limits}'
        config.write_text(config.read_text().replace('kind = "uniform"\n', data))
    return tables


def test_five_clinics_learn_the_mean_of_all_their_rows(tmp_path: Path) -> None:
    with Across(tmp_path, CLINICS, 5) as run:
        tables = prepared(run, tmp_path)
        boot = run.bootstrap()
        told = [node.document() for node in run.all_nodes(*SHARED)]
        result = boot.document()
    rows = [value for own in tables for value in own]
    assert {one["estimate"] for one in told} == {result["estimate"]}
    assert result["standard_error"] < 0.15
    assert abs(result["estimate"] - sum(rows) / len(rows)) <= 6 * result["standard_error"]
    found = p2pdp.audit(tmp_path / "boot")
    assert found.verified == "complete"
    assert {claim.unit for claim in found.claims} == {"record"}
    assert sorted(found.rows or ()) == sorted(map(len, tables))


def test_limits_are_about_the_unit_that_they_name_and_rows_are_those_that_were_stated(tmp_path: Path) -> None:
    with Across(tmp_path, CLINICS.replace("enrol_timeout_s = 600", "enrol_timeout_s = 20"), 5) as run:
        prepared(run, tmp_path, LIMITS.replace('unit = "record"\n', ""))
        run.bootstrap()
        run.node(0).fails(5, "unit")
        budget = LIMITS + '[budget]\nepsilon = 5.0\nledger = "spent"\n'
        config = tmp_path / "n0.toml"
        config.write_text(config.read_text().replace(LIMITS.replace('unit = "record"\n', ""), budget))
        run.node(0).fails(5, "[budget] unit")
        config.write_text(config.read_text().replace('ledger = "spent"', 'ledger = "spent"\nunit = "record"'))
        node = run.node(0)
        node.wait_until_said("bootstrap")
        node.wait_until_said("enrolled")
        node.kill()
        (tmp_path / "own0.csv").write_text("hours\n1\n2\n")
        run.node(0).fails(5, "rows")
