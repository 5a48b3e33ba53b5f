from __future__ import annotations

import errno
import json
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from p2pdp.core.errors import NotReady, UsageError, VerificationFailed
from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.files import folder as module
from p2pdp.files.folder import (
    check_new_file,
    disk_error,
    export,
    make_folder,
    peer_folder,
    read_evidence,
    read_json,
    to_json,
    write_arrays,
    write_json,
    write_ledgers,
    write_text,
)
from p2pdp.ledger import records
from tests.support.small import COMPLETE, RING, contents, recorded


def full(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def denied(*_: Any, **__: Any) -> None:
    raise PermissionError(errno.EACCES, "Permission denied")


# Writing


def test_each_peer_has_its_place() -> None:
    top = Path("run")
    assert peer_folder(top, CURATOR) == top / "curator"
    assert peer_folder(top, BOOTSTRAP) == top / "curator" / "bootstrap"
    assert peer_folder(top, 7) == top / "nodes" / "0007"
    assert peer_folder(top, 12345) == top / "nodes" / "12345"


def test_a_folder_is_made_with_its_parents_or_taken_if_empty(tmp_path: Path) -> None:
    assert make_folder(tmp_path / "a" / "b").is_dir()
    make_folder(tmp_path / "a" / "b")
    with pytest.raises(UsageError, match="not empty"):
        make_folder(tmp_path / "a")


def test_what_is_no_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UsageError, match="is not a folder"):
            make_folder(place)


@pytest.mark.parametrize(("broken", "error"), [(full, NotReady), (denied, UsageError)])
def test_a_full_disk_is_the_worlds_mistake_and_a_wrong_place_the_callers(
    broken: Callable[..., None], error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", broken)
        for call in (lambda: make_folder(tmp_path / "a"), lambda: write_ledgers(tmp_path, 1, b"x", b"y")):
            with pytest.raises(error):
                call()
    with monkeypatch.context() as patch:
        patch.setattr(module.os, "open", broken)
        with pytest.raises(error):
            write_ledgers(tmp_path, 1, b"x", b"y")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", broken)
        with pytest.raises(error):
            write_text(tmp_path / "text", "x")
    place = recorded(tmp_path)
    monkeypatch.setattr(module, "_secret", broken)
    for call in (lambda: write_arrays(tmp_path / "a.npz", {}), lambda: export(place, tmp_path / "file")):
        with pytest.raises(error):
            call()


def test_errors_name_the_place() -> None:
    assert str(disk_error("--out x", OSError(errno.EIO, "Input/output error"))) == "--out x: Input/output error"


def test_ledgers_are_for_their_owner_only_and_empty_ones_are_not_written(tmp_path: Path) -> None:
    write_ledgers(tmp_path, 3, b"view", b"")
    assert contents(tmp_path) == {"nodes/0003/view.ledger": b"view"}
    assert (tmp_path / "nodes" / "0003" / "view.ledger").stat().st_mode & 0o777 == 0o600


def test_a_text_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "text"
    write_text(path, "old ä\n")
    assert path.read_bytes() == "old ä\n".encode()
    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(NotReady):
        write_text(path, "new")
    assert path.read_text(encoding="utf-8") == "old ä\n"


def test_a_text_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="UTF-8"):
        write_text(tmp_path / "text", "\udc80")


def test_json_is_strict_and_plain_ascii(tmp_path: Path) -> None:
    for number in (float("inf"), float("nan")):
        with pytest.raises(ValueError, match="JSON"):
            to_json({"a": number})
    write_json(tmp_path / "a.json", {"a": "ä\udc80", "b": [1, None]})
    assert (tmp_path / "a.json").read_bytes().isascii()
    assert read_json(tmp_path / "a.json") == {"a": "ä\udc80", "b": [1, None]}


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff", b"3", b"[" * 100_000])
def test_what_is_no_json_object_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(VerificationFailed, match=r"a\.json"):
        read_json(tmp_path / "a.json")


def test_a_json_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="none"):
        read_json(tmp_path / "none")


def test_arrays_load_without_pickle(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a.npz", {"x": np.eye(2), "name": np.array("public")})
    with np.load(tmp_path / "a.npz", allow_pickle=False) as arrays:
        assert str(arrays["name"]) == "public"
    with pytest.raises(ValueError, match="allow_pickle"):
        write_arrays(tmp_path / "b.npz", {"x": np.array([None])})


def test_a_file_needs_a_folder_to_be_in(tmp_path: Path) -> None:
    check_new_file(tmp_path / "new", "--out")
    with pytest.raises(UsageError, match=r"--out .* is a folder"):
        check_new_file(tmp_path, "--out")
    with pytest.raises(UsageError, match=r"--out .* there is no folder"):
        check_new_file(tmp_path / "none" / "new", "--out")


# Evidence


def test_a_folder_and_its_export_are_the_same_evidence(tmp_path: Path) -> None:
    place = recorded(tmp_path, COMPLETE)
    assert export(place, tmp_path / "file") == 7
    whole, bare = read_evidence(place), read_evidence(tmp_path / "file")
    assert (whole.spec, whole.spec_digest, whole.roster) == (bare.spec, bare.spec_digest, bare.roster)
    assert set(whole.views) == set(bare.views) == {BOOTSTRAP, CURATOR, *range(5)}
    assert (whole.own, bare.own) == (None, None)
    assert set(whole.private) == set(whole.views)
    assert bare.private == {}
    for peer, data in whole.views.items():
        assert records.to_skeleton(data) == bare.views[peer]


def test_values_are_in_no_text_about_evidence(tmp_path: Path) -> None:
    assert "views=" not in repr(read_evidence(recorded(tmp_path)))


def test_handed_in_skeletons_stand_for_ledgers_elsewhere(tmp_path: Path) -> None:
    place = recorded(tmp_path)
    view = place / "nodes" / "0002" / "view.ledger"
    skeleton = records.to_skeleton(view.read_bytes())
    handed_in = place / "curator" / "skeletons" / "0002.skeleton"
    handed_in.parent.mkdir()
    handed_in.write_bytes(skeleton)
    assert read_evidence(place).views[2] == view.read_bytes()
    view.unlink()
    assert read_evidence(place).views[2] == skeleton


@pytest.mark.parametrize("name", ["spec.toml", "roster.json"])
def test_a_folder_without_spec_or_roster_is_no_run(name: str, tmp_path: Path) -> None:
    place = recorded(tmp_path)
    (place / name).unlink()
    with pytest.raises(UsageError, match=f"it lacks {name}"):
        read_evidence(place)


@pytest.mark.parametrize("content", [b"\xff", b"[run", b"", b'[run]\nnodes = "x"\n'])
def test_a_spec_that_cannot_be_read_is_a_damaged_run(content: bytes, tmp_path: Path) -> None:
    place = recorded(tmp_path)
    (place / "spec.toml").write_bytes(content)
    with pytest.raises(VerificationFailed, match=r"spec\.toml"):
        read_evidence(place)
    with pytest.raises(VerificationFailed, match=r"spec\.toml"):
        export(place, tmp_path / "file")


def test_any_change_of_the_roster_is_seen(tmp_path: Path) -> None:
    place = recorded(tmp_path)
    document = json.loads((place / "roster.json").read_text())
    for name in document:
        (place / "roster.json").write_text(json.dumps({key: value for key, value in document.items() if key != name}))
        with pytest.raises(VerificationFailed, match="roster"):
            read_evidence(place)


@pytest.mark.parametrize("name", ["0001x", "1", "00001", "²²²²", "-001"])
def test_a_folder_that_is_no_nodes_is_refused(name: str, tmp_path: Path) -> None:
    place = recorded(tmp_path)
    (place / "nodes" / name).mkdir()
    with pytest.raises(VerificationFailed, match="is not the folder of a node"):
        read_evidence(place)


def test_files_between_the_nodes_folders_are_left_alone(tmp_path: Path) -> None:
    place = recorded(tmp_path)
    (place / "nodes" / ".listing").write_text("")
    assert set(read_evidence(place).views) == {BOOTSTRAP, CURATOR, *range(4)}


def test_pieces_of_what_never_came_whole_are_no_evidence(tmp_path: Path) -> None:
    place = recorded(tmp_path)
    export(place, tmp_path / "before")
    for folder in ("nodes/0001", "curator"):
        (place / folder).mkdir(exist_ok=True)
        (place / folder / "0000.pieces").write_bytes(b"rubbish")
    export(place, tmp_path / "after")
    assert (tmp_path / "after").read_bytes() == (tmp_path / "before").read_bytes()
    assert set(read_evidence(place).views) == {BOOTSTRAP, CURATOR, *range(4)}


def test_a_node_beyond_the_roster_is_read_for_verify_to_judge(tmp_path: Path) -> None:
    place = recorded(tmp_path)
    (place / "nodes" / "0004").mkdir()
    assert 4 not in read_evidence(place).views
    (place / "nodes" / "0004" / "view.ledger").write_bytes(b"x")
    assert read_evidence(place).views[4] == b"x"


@pytest.mark.parametrize("place", ["none", "/dev/null"])
def test_what_is_neither_file_nor_folder_is_refused(place: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        read_evidence(tmp_path / place)


# Exported files


def exported(tmp_path: Path) -> bytes:
    export(recorded(tmp_path, RING), tmp_path / "file")
    return (tmp_path / "file").read_bytes()


def test_an_export_is_not_overwritten(tmp_path: Path) -> None:
    data = exported(tmp_path)
    with pytest.raises(UsageError, match="exists already"):
        export(tmp_path / "run", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == data


def test_an_export_cut_anywhere_is_refused(tmp_path: Path) -> None:
    data = exported(tmp_path)
    for length in (*range(40), len(data) // 2, len(data) - 1):
        (tmp_path / "cut").write_bytes(data[:length])
        with pytest.raises((UsageError, VerificationFailed)):
            read_evidence(tmp_path / "cut")


@pytest.mark.parametrize(
    "change",
    [
        lambda parts: parts[:3],
        lambda parts: [*parts, None],
        lambda parts: [7, *parts[1:]],
        lambda parts: [parts[0], "roster", *parts[2:]],
        lambda parts: [parts[0], b"roster", *parts[2:]],
        lambda parts: [*parts[:2], 7, None],
        lambda parts: [*parts[:2], [[1, 2, 3]], None],
        lambda parts: [*parts[:2], [[1, 10**12]], None],
        lambda parts: [*parts[:2], [["1", b""]], None],
        lambda parts: [*parts[:2], [[[], b""]], None],
        lambda parts: [*parts[:2], [*parts[2], parts[2][0]], None],
        lambda parts: [*parts[:3], 99],
        lambda parts: [*parts[:3], []],
        lambda _: 7,
        lambda _: [],
    ],
)
def test_an_export_of_another_form_is_damaged(change: Callable[[Any], Any], tmp_path: Path) -> None:
    data = exported(tmp_path)
    parts = records.unpack(zlib.decompress(data[16:]))
    (tmp_path / "other").write_bytes(data[:16] + zlib.compress(records.pack(change(parts))))
    with pytest.raises(VerificationFailed):
        read_evidence(tmp_path / "other")


def test_an_export_that_claims_more_than_it_holds_is_refused_before_room_is_made(tmp_path: Path) -> None:
    """Lists in lists, each of which claims to be as long as the file is."""
    data = exported(tmp_path)
    content = b"\xdd\x00\x80\x00\x00" * 600 + bytes(1 << 23)
    (tmp_path / "other").write_bytes(data[:16] + zlib.compress(content))
    tracemalloc.start()
    try:
        with pytest.raises(VerificationFailed, match="damaged"):
            read_evidence(tmp_path / "other")
        assert tracemalloc.get_traced_memory()[1] < 6 * len(content)
    finally:
        tracemalloc.stop()


def test_a_ledger_that_is_none_cannot_be_exported(tmp_path: Path) -> None:
    place = recorded(tmp_path)
    (place / "curator" / "view.ledger").write_bytes(b"nothing")
    with pytest.raises(VerificationFailed, match="the ledger of curator"):
        export(place, tmp_path / "file")
    assert not (tmp_path / "file").exists()


def test_what_is_secret_is_its_owners_only_whatever_was_there(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    for secret, mode in ((False, 0o644), (True, 0o600)):
        write_text(file, "x", secret=secret)
        assert file.stat().st_mode & 0o777 == mode
    file.with_name("result.json.part").touch(0o644)
    write_text(file, "y", secret=True)
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("y", 0o600)
    export(recorded(tmp_path), tmp_path / "file")
    write_arrays(tmp_path / "a.npz", {})
    for name in ("file", "a.npz", "run/result.json", "run/audit.json", "run/report.html"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
