from __future__ import annotations

import json
import platform
import re
import stat
import struct
import zlib
from pathlib import Path

import msgpack
import pytest

import p2pdp
from p2pdp.core.errors import Refused, UsageError, VerificationFailed
from p2pdp.files.folder import read_evidence
from p2pdp.sim.faults import Faults
from tests.support.artifacts import HOURS, OWN, live, made, own_spec, swept
from tests.support.small import contents, recorded


def _forms(value: float, exponent: int) -> list[bytes]:
    """How a value could stand in a file."""
    forms = [str(value).encode(), repr(-value).encode(), struct.pack(">d", value), struct.pack("<d", value)]
    return [*forms, msgpack.packb(round(value / 2.0**exponent))]


def _all_bytes(place: Path) -> bytes:
    """The bytes of all files with their names, unpacked where they are packed."""
    found = b""
    for name, data in contents(place).items():
        found += name.encode() + data
        if name == "run.p2pdp":
            found += zlib.decompress(data[data.index(b"\n") + 1 :])
    return found


@pytest.mark.parametrize("auditor", [False, True])
def test_no_value_truth_path_or_host_of_a_live_run_is_inside(auditor: bool, tmp_path: Path) -> None:
    place = live(tmp_path)
    found = made(place, tmp_path / "artifact", auditor=auditor)
    assert (found.kind, found.edition) == ("live", "auditor" if auditor else "public")
    inside = _all_bytes(tmp_path / "artifact")
    result = json.loads((place / "result.json").read_text())
    exponent = read_evidence(place).run.plan.grid_exponent
    for value in (*HOURS, result["truth"], result["error"]):
        assert not [form for form in _forms(value, exponent) if len(form) > 4 and form in inside]
    for text in (str(tmp_path), "ward-seven"):
        assert text.encode() not in inside
    for name, data in contents(tmp_path / "artifact").items():  # a host's name may be short, and in bytes by chance
        assert name == "run.p2pdp" or re.search(rf"\b{re.escape(platform.node())}\b".encode(), data) is None
    ledgers = [path.read_bytes() for path in place.rglob("private.ledger")]
    keys = [path.read_bytes().strip() for path in place.rglob("*.key")]
    assert len(ledgers) >= 4
    assert not [secret for secret in (*ledgers, *keys) if secret and secret in inside]


def test_only_the_auditor_s_edition_tells_anything_of_the_route(tmp_path: Path) -> None:
    place = live(tmp_path)
    made(place, tmp_path / "public")
    made(place, tmp_path / "auditor", auditor=True)
    public, auditor = (contents(tmp_path / name) for name in ("public", "auditor"))
    assert not {"run.p2pdp", "expected/audit.json"} & public.keys()
    assert auditor["expected/audit.json"] == (place / "audit.json").read_bytes()
    told = json.loads(public["expected/participants.json"])
    assert {claim["conditioning"] for claim in told["claims"]} == {"a-priori"}
    assert not {"messages", "bytes", "seconds", "faults", "truth", "error"} & told.keys()
    result = json.loads((place / "result.json").read_text())
    assert str(result["seconds"])[:6].encode() not in b"".join(public.values())
    assert b"Do not publish" in auditor["README.md"]
    for path in (tmp_path / "auditor").rglob("*"):
        assert path.is_dir() or stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_who_is_missing_follows_from_the_ledgers_and_not_from_the_result(tmp_path: Path) -> None:
    place = live(tmp_path)
    made(place, tmp_path / "one")
    result = json.loads((place / "result.json").read_text())
    (place / "result.json").write_text(json.dumps({**result, "missing": [2], "nodes": 99, "run_id": "ab"}))
    made(place, tmp_path / "two")
    name = "expected/participants.json"
    assert contents(tmp_path / "one")[name] == contents(tmp_path / "two")[name]


def test_exported_skeletons_verify_and_audit_by_themselves(tmp_path: Path) -> None:
    place = live(tmp_path)
    made(place, tmp_path / "artifact", auditor=True)
    skeletons = tmp_path / "artifact" / "run.p2pdp"
    assert p2pdp.verify(skeletons).verified == "complete"
    assert p2pdp.audit(skeletons).to_json() == p2pdp.audit(place).to_json()


def test_a_simulated_run_says_what_a_repetition_needs(tmp_path: Path) -> None:
    place = recorded(tmp_path)
    found = made(place, tmp_path / "a")
    made(place, tmp_path / "b.zip")
    made(place, tmp_path / "c.zip")
    assert (tmp_path / "b.zip").read_bytes() == (tmp_path / "c.zip").read_bytes()
    facts = json.loads((tmp_path / "a" / "artifact.json").read_text())
    assert (facts["kind"], facts["seed"], facts["versions"]["p2pdp"]) == ("simulated", 5, p2pdp.__version__)
    assert facts["repeated"].keys() == contents(place).keys()
    assert found.compared == len(facts["repeated"])
    assert found.files == sorted(name for name in contents(tmp_path / "a") if name != "SHA256SUMS")
    assert platform.node() not in json.dumps(facts["versions"])


def test_a_seeded_run_on_own_data_is_refused_unless_they_are_public(tmp_path: Path) -> None:
    place = tmp_path / "run"
    p2pdp.simulate(own_spec(tmp_path), place)
    with pytest.raises(Refused, match="--public-data"):
        made(place, tmp_path / "artifact")
    assert not (tmp_path / "artifact").exists()
    made(place, tmp_path / "artifact", public_data=True)
    inside = contents(tmp_path / "artifact")
    assert inside["inputs/data.csv"] == (tmp_path / "ward-seven-hours.csv").read_bytes()
    assert str(tmp_path).encode() not in b"".join(inside.values())
    assert b"ward-seven" not in b"".join(inside.values())


def test_a_run_that_its_spec_does_not_give_again_is_refused(tmp_path: Path) -> None:
    place = recorded(tmp_path)
    view = place / "nodes" / "0001" / "view.ledger"
    view.write_bytes(view.read_bytes()[:-1])
    with pytest.raises(Refused, match=r"nodes/0001/view\.ledger"):
        made(place, tmp_path / "artifact")
    faulty = tmp_path / "faulty"
    p2pdp.simulate(tmp_path / "spec.toml", faulty, faults=Faults(delay_s=0.5))
    with pytest.raises(Refused, match="with faults"):
        made(faulty, tmp_path / "artifact")


@pytest.mark.parametrize("more", [{"trials": 3}, {"fast": True}, {"fast": True, "trials": 4}, {"trace_wire": True}])
def test_runs_of_all_kinds_are_packed(more: dict[str, int], tmp_path: Path) -> None:
    recorded(tmp_path)
    p2pdp.simulate(tmp_path / "spec.toml", tmp_path / "other", **more)  # type: ignore[arg-type]
    assert made(tmp_path / "other", tmp_path / "artifact").compared == len(contents(tmp_path / "other"))


def test_a_sweep_keeps_estimates_and_truths_to_itself(tmp_path: Path) -> None:
    place = swept(tmp_path)
    found = made(place, tmp_path / "artifact")
    assert (found.kind, found.compared) == ("sweep", 4)
    inside = b"".join(contents(tmp_path / "artifact").values())
    for path in (place / "rows").iterdir():
        row = json.loads(path.read_text())["row"]
        assert not [value for value in (row["estimate"], row["truth"]) if str(value).encode() in inside]
        assert str(row["error"]).encode() in inside
    assert str(tmp_path).encode() not in inside


def test_an_unfinished_sweep_and_one_over_files_is_refused(tmp_path: Path) -> None:
    place = swept(tmp_path)
    next((place / "rows").iterdir()).unlink()
    with pytest.raises(UsageError, match="1 rows are missing"):
        made(place, tmp_path / "artifact")
    own = tmp_path / "own"
    own.mkdir()
    base = own_spec(own, OWN).rename(own / "base.toml")
    files = [str(own / "ward-seven-hours.csv")]
    place = swept(own, base=base, what="plan", grid={"data.path": files})
    with pytest.raises(UsageError, match="files"):
        made(place, tmp_path / "artifact")


def test_what_is_no_finished_run_or_only_a_part_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"result\.json"):
        made(tmp_path, tmp_path / "artifact")
    place = live(tmp_path)
    with pytest.raises(UsageError, match=r"result\.json"):
        made(place / "nodes" / "0000", tmp_path / "artifact")
    view = place / "nodes" / "0001" / "view.ledger"
    data = bytearray(view.read_bytes())
    data[len(data) // 2] ^= 1
    view.write_bytes(data)
    for auditor in (False, True):
        with pytest.raises(VerificationFailed):
            made(place, tmp_path / "artifact", auditor=auditor)
