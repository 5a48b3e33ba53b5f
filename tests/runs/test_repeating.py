from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import p2pdp
from p2pdp.core.errors import NotReady, VerificationFailed
from p2pdp.runs.repeating import repeat_artifact
from tests.support.artifacts import forged, live, made, own_spec, simulated, swept
from tests.support.small import contents


@pytest.mark.parametrize("packed", [False, True])
def test_a_simulated_run_is_repeated_elsewhere_byte_by_byte(packed: bool, tmp_path: Path) -> None:
    place = simulated(tmp_path)
    if packed:
        made(tmp_path / "run", tmp_path / "artifact.zip")
        place = tmp_path / "artifact.zip"
    elsewhere = tmp_path / "fresh" / place.name
    elsewhere.parent.mkdir()
    shutil.move(place, elsewhere)
    shutil.rmtree(tmp_path / "run")
    (tmp_path / "spec.toml").unlink()
    found = repeat_artifact(elsewhere)
    assert (found.kind, found.edition) == ("simulated", "public")
    assert found.compared > 10


def test_public_data_come_along(tmp_path: Path) -> None:
    p2pdp.simulate(own_spec(tmp_path), tmp_path / "run")
    made(tmp_path / "run", tmp_path / "artifact", public_data=True)
    shutil.rmtree(tmp_path / "run")
    (tmp_path / "ward-seven-hours.csv").unlink()
    assert repeat_artifact(tmp_path / "artifact").compared > 10
    changed = forged(tmp_path / "artifact", tmp_path / "b", "inputs/data.csv", b"4.75", b"4.76")
    with pytest.raises(VerificationFailed, match="differs"):
        repeat_artifact(changed)


@pytest.mark.parametrize("auditor", [False, True])
def test_a_live_run_is_checked_without_its_folder(auditor: bool, tmp_path: Path) -> None:
    place = live(tmp_path)
    made(place, tmp_path / "artifact", auditor=auditor)
    shutil.rmtree(place)
    found = repeat_artifact(tmp_path / "artifact")
    assert (found.kind, found.edition) == ("live", "auditor" if auditor else "public")


def test_a_sweep_is_repeated_row_by_row(tmp_path: Path) -> None:
    made(swept(tmp_path), tmp_path / "artifact.zip")
    shutil.rmtree(tmp_path / "swept")
    assert repeat_artifact(tmp_path / "artifact.zip").compared == 5  # four rows, and the table that is shown


def test_whatever_is_changed_is_noticed_although_all_digests_were_made_again(tmp_path: Path) -> None:
    place = simulated(tmp_path)
    digest = json.loads((place / "artifact.json").read_text())["repeated"]["result.json"].encode()
    for number, (name, old, new) in enumerate(
        [
            ("spec.toml", b"sigma = 2.0", b"sigma = 2.5"),
            ("spec.toml", b"seed = 5", b"seed = 6"),
            ("artifact.json", digest, digest[::-1]),
            ("expected/audit.json", b'"epsilon_max": ', b'"epsilon_max": 0'),
        ]
    ):
        changed = forged(place, tmp_path / f"forged{number}", name, old, new)
        with pytest.raises(VerificationFailed):
            repeat_artifact(changed)


@pytest.mark.parametrize(
    ("auditor", "name", "old", "new"),
    [
        (False, "expected/participants.json", b'"epsilon": ', b'"epsilon": 1'),
        (False, "artifact.json", b'"n": 4', b'"n": 5'),
        (False, "spec.toml", b"sigma = 2.0", b"sigma = 9.0"),
        (True, "expected/audit.json", b'"epsilon": ', b'"epsilon": 1'),
        (True, "spec.toml", b"sigma = 2.0", b"sigma = 9.0"),
        (True, "artifact.json", b'"roster_digest": "', b'"roster_digest": "0'),
    ],
)
def test_claims_of_a_live_run_cannot_be_changed(
    auditor: bool, name: str, old: bytes, new: bytes, tmp_path: Path
) -> None:
    made(live(tmp_path), tmp_path / "artifact", auditor=auditor)
    with pytest.raises(VerificationFailed):
        repeat_artifact(forged(tmp_path / "artifact", tmp_path / "forged", name, old, new))


def test_skeletons_of_another_run_are_no_evidence(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        made(live(tmp_path / name), tmp_path / name / "artifact", auditor=True)
    first, second = (contents(tmp_path / name / "artifact")["run.p2pdp"] for name in ("one", "two"))
    changed = forged(tmp_path / "one" / "artifact", tmp_path / "forged", "run.p2pdp", first, second)
    with pytest.raises(VerificationFailed):
        repeat_artifact(changed)


def test_numbers_of_a_sweep_cannot_be_changed(tmp_path: Path) -> None:
    made(swept(tmp_path), tmp_path / "artifact")
    for number, (name, old, new) in enumerate(
        [("expected/rows.csv", b"inf", b"1.5"), ("base.toml", b"laps = 2", b"laps = 3")]
    ):
        with pytest.raises(VerificationFailed):
            repeat_artifact(forged(tmp_path / "artifact", tmp_path / f"forged{number}", name, old, new))


def test_an_artifact_opens_no_file_of_whoever_repeats_it(tmp_path: Path) -> None:
    p2pdp.simulate(own_spec(tmp_path), tmp_path / "run")
    made(tmp_path / "run", tmp_path / "artifact", public_data=True)
    private = str(tmp_path / "ward-seven-hours.csv").encode()
    changed = forged(tmp_path / "artifact", tmp_path / "forged", "spec.toml", b"inputs/data.csv", private)
    with pytest.raises(VerificationFailed, match=r"leads out|outside"):
        repeat_artifact(changed)


def test_another_version_is_named_and_nothing_is_run(tmp_path: Path) -> None:
    version = f'"p2pdp": "{p2pdp.__version__}"'.encode()
    changed = forged(simulated(tmp_path), tmp_path / "forged", "artifact.json", version, b'"p2pdp": "99"')
    with pytest.raises(NotReady, match="99"):
        repeat_artifact(changed)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"{", b"["),
        (b'"format": 1', b'"format": 2'),
        (b'"kind"', b'"kin"'),
        (b'"how"', b'"who"'),
        (b'"simulated"', b"3"),
    ],
)
def test_damaged_facts_are_refused(old: bytes, new: bytes, tmp_path: Path) -> None:
    changed = forged(simulated(tmp_path), tmp_path / "forged", "artifact.json", old, new)
    with pytest.raises(VerificationFailed):
        repeat_artifact(changed)
