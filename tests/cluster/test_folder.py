from __future__ import annotations

import fcntl
import json
from pathlib import Path

import pytest

from p2pdp.cluster import folder as module
from p2pdp.cluster.folder import RUN_FILE, BootstrapFolder, RunFolder, is_bootstrap_folder
from p2pdp.core.errors import NotReady, UsageError, VerificationFailed
from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.crypto.roster import Roster
from p2pdp.crypto.tokens import JoinToken
from tests.support.local import SPEC, job_in, run_all
from tests.support.toys import roster


def test_a_folder_is_found_again_as_it_was_made(tmp_path: Path) -> None:
    made = RunFolder.make(tmp_path / "run", "[run]\n")
    again = RunFolder(tmp_path / "run")
    assert (again.run_id, again.started, again.spec_text) == (made.run_id, made.started, "[run]\n")
    assert made.tokens(3) == again.tokens(3)
    assert len(set(made.tokens(3))) == 3
    assert (tmp_path / "run" / "curator" / "tokens" / "secrets").stat().st_mode & 0o777 == 0o600
    assert not again.is_done
    assert RunFolder.make(tmp_path / "other", "").run_id != made.run_id


def test_what_is_no_live_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not the folder of a live run"):
        RunFolder(tmp_path)
    with pytest.raises(UsageError, match="not the folder of a live run"):
        RunFolder(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="not empty"):
        RunFolder.make(Path(__file__).parent, "")


@pytest.mark.parametrize("text", ["{}", "[]", "nothing", '{"run_id": "xy", "started": "2024-01-01"}', '{"run_id": 1}'])
def test_a_damaged_folder_is_refused(tmp_path: Path, text: str) -> None:
    RunFolder.make(tmp_path / "run", "")
    (tmp_path / "run" / "run.json").write_text(text)
    with pytest.raises(VerificationFailed):
        RunFolder(tmp_path / "run")


def test_one_launcher_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOCK_S", 0.0)
    folder = RunFolder.make(tmp_path / "run", "")
    with folder.locked(), pytest.raises(NotReady, match="another process"):
        folder.locked().__enter__()
    with folder.locked():
        assert folder.path.is_dir()


def test_a_launcher_that_is_ending_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder.make(tmp_path / "run", "")
    other = (tmp_path / "run" / "run.json").open("rb")
    fcntl.flock(other, fcntl.LOCK_EX)
    monkeypatch.setattr(module, "sleep", lambda _delay_s: other.close())
    with folder.locked():
        assert other.closed


async def test_a_run_is_over_when_bootstrap_and_curator_have_left(tmp_path: Path) -> None:
    job = job_in(tmp_path / "run")
    (job.folder / "run.json").write_text(json.dumps({"run_id": "00" * 16, "started": "2024-01-01T00:00:00+00:00"}))
    folder = RunFolder(job.folder)
    assert folder.is_done is False
    await run_all(job)
    assert RunFolder(job.folder).is_done
    sent_bytes, faults = folder.totals(Roster.from_json(json.loads((job.folder / "roster.json").read_text())))
    assert sent_bytes > 0
    assert faults == {}
    left = job.folder / "nodes" / "0001" / "run.key"
    left.write_bytes(bytes(32))
    begun = left.with_name("0002.pieces")
    begun.write_bytes(b"what never came whole")
    folder.drop_run_keys()
    assert not left.exists()
    assert not begun.exists()


async def test_what_a_crash_tore_is_cut_off_in_every_ledger(tmp_path: Path) -> None:
    job = job_in(tmp_path / "run")
    (job.folder / "run.json").write_text(json.dumps({"run_id": "00" * 16, "started": "2024-01-01T00:00:00+00:00"}))
    await run_all(job)
    signed = Roster.from_json(json.loads((job.folder / "roster.json").read_text()))
    whole = RunFolder(job.folder).evidence(signed).views
    assert sorted(whole) == [CURATOR, BOOTSTRAP, 0, 1, 2]
    kept = {path: path.read_bytes() for path in job.folder.rglob("*.ledger")}
    for path, data in kept.items():
        path.write_bytes(data + b"\x93\xc4")
    (job.folder / "nodes" / "0002" / "view.ledger").write_bytes(b"p2p")
    evidence = RunFolder(job.folder).evidence(signed)
    assert 2 not in evidence.begun
    assert {peer: evidence.views[peer] for peer in evidence.begun} == {
        peer: view for peer, view in whole.items() if peer != 2
    }
    kept[job.folder / "nodes" / "0002" / "view.ledger"] = b""
    assert {path: path.read_bytes() for path in kept} == kept


def test_folders_are_named_after_users_where_some_stayed_away(tmp_path: Path) -> None:
    folder = RunFolder.make(tmp_path / "run", "")
    signed = roster(3)
    keys = [entry.identity.hex() for entry in signed.entries]
    for slot, key in {0: None, 1: keys[0], 2: "ff" * 32, 4: keys[1], 5: keys[2]}.items():
        place = tmp_path / "run" / "nodes" / f"{slot:04d}"
        place.mkdir(parents=True)
        if key is not None:
            (place / "identity.pub").write_text(key + "\n")
    for _ in range(2):  # a second time changes nothing
        folder.name_after_users(signed, 6)
        nodes = tmp_path / "run" / "nodes"
        assert [place.name for place in sorted(nodes.iterdir())] == ["0000", "0001", "0002"]
        assert [(nodes / f"{user:04d}" / "identity.pub").read_text().strip() for user in range(3)] == keys
        aside = sorted(place.name for place in (tmp_path / "run").glob("stayed-away-*"))
        assert aside == ["stayed-away-0000", "stayed-away-0002"]


def test_the_same_spec_goes_on_with_the_same_run_and_tokens(tmp_path: Path) -> None:
    place = tmp_path / "boot"
    assert not is_bootstrap_folder(place)
    folder = BootstrapFolder.open(place, SPEC, 3)
    assert (folder.listen, folder.address, folder.token_count) == (None, None, 3)
    public = folder.identity().public
    secrets = folder.write_tokens("10.0.0.1:7000", "gate:70", public)
    again = BootstrapFolder.open(place, SPEC, 3)
    assert is_bootstrap_folder(place)
    assert (again.run_id, again.started) == (folder.run_id, folder.started)
    assert (again.listen, again.address, again.identity().public) == ("10.0.0.1:7000", "gate:70", public)
    assert again.write_tokens("10.0.0.2:7000", "gate:70", public) == secrets
    assert again.listen == "10.0.0.2:7000"
    assert again.identity("curator").public != public
    for number, secret in enumerate(secrets):
        path = place / "tokens" / f"{number:04d}.token"
        assert JoinToken.from_text(path.read_text()) == JoinToken("gate:70", public, secret, number)
        assert path.stat().st_mode & 0o777 == 0o600
    assert len(set(secrets)) == 3


def test_what_would_be_another_run_is_refused(tmp_path: Path) -> None:
    folder = BootstrapFolder.open(tmp_path / "boot", SPEC, 3)
    folder.write_tokens("here:1", "here:1", bytes(32))
    with pytest.raises(UsageError, match="another spec"):
        BootstrapFolder.open(tmp_path / "boot", SPEC + "\n", 3)
    with pytest.raises(UsageError, match="begun with 3"):
        BootstrapFolder.open(tmp_path / "boot", SPEC, 4)
    with pytest.raises(UsageError, match="its tokens name here:1"):
        folder.write_tokens("here:1", "there:1", bytes(32))
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="not empty"):
        BootstrapFolder.open(tmp_path, SPEC, 3)


def test_a_first_start_that_was_cut_short_is_finished_by_the_next(tmp_path: Path) -> None:
    BootstrapFolder.open(tmp_path / "boot", SPEC, 1)
    (tmp_path / "boot" / RUN_FILE).unlink()
    assert len(BootstrapFolder.open(tmp_path / "boot", SPEC, 1).run_id) == 16


def test_handed_in_skeletons_lie_where_an_audit_looks_for_them(tmp_path: Path) -> None:
    folder = BootstrapFolder.open(tmp_path / "boot", SPEC, 1)
    folder.identity("curator")
    for _ in range(2):
        folder.deposit({0: b"first", 12: b"other"})
    place = tmp_path / "boot" / "curator" / "skeletons"
    assert {path.name: path.read_bytes() for path in place.iterdir()} == {
        "0000.skeleton": b"first",
        "0012.skeleton": b"other",
    }
