from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from p2pdp.core.errors import NotReady, VerificationFailed
from p2pdp.files.folder import WIRE_FILE
from p2pdp.ledger.journal import PRIVATE, VIEW
from p2pdp.ledger.records import CLOSED, LEDGER_MAGIC, OPENED, Chain
from p2pdp.node.disk import Disk, PieceFiles, WireLog, drop_pieces, durable_secret, is_closed, write_durably
from p2pdp.peer.pieces import SHELF_BYTES_MAX
from tests.support.toys import link_to


def stored(disk: Disk) -> bytes:
    """What a restart would read of the view ledger."""
    ledger = disk.stored[VIEW]
    with ledger.open() as file:
        return file.read(ledger.size)


def records(count: int) -> list[bytes]:
    chain = Chain()
    return [chain.append(OPENED, (number,)) for number in range(count)]


def test_what_was_appended_is_there_in_order_and_for_its_owner_only(tmp_path: Path) -> None:
    first, second = records(2)
    disk = Disk(tmp_path / "node", power=False)
    disk.append(((PRIVATE, LEDGER_MAGIC), (VIEW, LEDGER_MAGIC), (VIEW, first), (PRIVATE, first), (VIEW, second)))
    disk.close()
    assert (tmp_path / "node" / "view.ledger").read_bytes() == LEDGER_MAGIC + first + second
    assert (tmp_path / "node" / "private.ledger").read_bytes() == LEDGER_MAGIC + first
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "node").iterdir()} == {0o600}


def test_a_torn_record_is_cut_off_at_every_length(tmp_path: Path) -> None:
    first, second = records(2)
    for length in range(1, len(second)):
        path = tmp_path / "view.ledger"
        path.write_bytes(LEDGER_MAGIC + first + second[:length])
        disk = Disk(tmp_path, power=False)
        assert stored(disk) == LEDGER_MAGIC + first
        disk.append(((VIEW, second),))
        disk.close()
        assert path.read_bytes() == LEDGER_MAGIC + first + second


def test_a_file_that_is_no_ledger_is_never_touched(tmp_path: Path) -> None:
    (tmp_path / "view.ledger").write_bytes(b"somebody's diary\n" * 3)
    with pytest.raises(VerificationFailed):
        Disk(tmp_path, power=False)
    assert (tmp_path / "view.ledger").read_bytes() == b"somebody's diary\n" * 3


@pytest.mark.parametrize("power", [True, False])
def test_power_syncs_each_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, power: bool) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", synced.append)
    disk = Disk(tmp_path, power=power)
    disk.append(((VIEW, LEDGER_MAGIC), (VIEW, records(1)[0]), (PRIVATE, LEDGER_MAGIC)))
    disk.close()
    assert len(synced) == (2 if power else 0)


def test_from_when_the_spec_is_known_to_ask_for_it_each_write_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    disk = Disk(tmp_path, power=False)
    monkeypatch.setattr(os, "fdatasync", synced.append)
    disk.append(((VIEW, LEDGER_MAGIC),))
    disk.make_durable()
    disk.append(((VIEW, b"more"),))
    disk.close()
    assert len(synced) == 1


def test_a_full_disk_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int, _data: bytes) -> int:
        raise OSError(28, "No space left on device")

    disk = Disk(tmp_path, power=False)
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(NotReady, match="No space left"):
        disk.append(((VIEW, LEDGER_MAGIC),))
    disk.close()


def test_a_torn_magic_line_is_cut_off_too(tmp_path: Path) -> None:
    for length in range(len(LEDGER_MAGIC)):
        (tmp_path / "view.ledger").write_bytes(LEDGER_MAGIC[:length])
        disk = Disk(tmp_path, power=False)
        assert stored(disk) == b""
        disk.close()
        assert (tmp_path / "view.ledger").read_bytes() == b""


def test_writes_are_in_order_and_grouped_by_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs and draws are with the system before the record that uses them."""
    disk = Disk(tmp_path, power=False)
    names = {os.fstat(descriptor).st_ino: name for name, descriptor in disk._descriptors.items()}
    written: list[tuple[str, bytes]] = []
    write = os.write

    def noted(descriptor: int, data: bytes) -> int:
        written.append((names[os.fstat(descriptor).st_ino], bytes(data)))
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", noted)
    disk.append(((PRIVATE, b"a"), (PRIVATE, b"b"), (VIEW, b"c"), (VIEW, b"d"), (PRIVATE, b"e")))
    assert written == [(PRIVATE, b"ab"), (VIEW, b"cd"), (PRIVATE, b"e")]
    disk.append(())
    assert len(written) == 3
    disk.close()


def test_what_the_system_takes_in_pieces_is_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    disk = Disk(tmp_path, power=False)
    disk.append(((VIEW, b"0123456789"),))
    disk.close()
    assert disk.read(VIEW) == b"0123456789"


def test_a_disk_that_is_really_full_is_not_ready_and_keeps_what_was_whole(tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk; a process of its own is the one it is for."""
    script = f"""
import resource, signal
from pathlib import Path
from p2pdp.core.errors import NotReady
from p2pdp.ledger.records import LEDGER_MAGIC, OPENED, Chain
from p2pdp.node.disk import Disk
from tests.support.toys import link_to
resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
disk, chain = Disk(Path({str(tmp_path)!r}), power=False), Chain()
disk.append((("view", LEDGER_MAGIC),))
try:
    while True:
        disk.append((("view", chain.append(OPENED, (1,))),))
except NotReady as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "view.ledger: File too large" in done.stdout
    left = (tmp_path / "view.ledger").read_bytes()  # without the part of an entry that went there last
    disk = Disk(tmp_path, power=False)
    disk.close()
    assert left == stored(disk)
    assert 0 < len(left) < 200


def test_a_place_that_is_no_folder_is_not_ready(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotReady):
        Disk(tmp_path / "file" / "node", power=False)


def test_a_ledger_is_closed_by_its_last_record_only(tmp_path: Path) -> None:
    assert not is_closed(tmp_path)
    chain = Chain()
    opened, closed = chain.append(OPENED, (1,)), chain.append(CLOSED, (b"signature",))
    path = tmp_path / "view.ledger"
    for data in (b"", LEDGER_MAGIC[:5], LEDGER_MAGIC, LEDGER_MAGIC + opened, LEDGER_MAGIC + opened + closed[:-1]):
        path.write_bytes(data)
        assert not is_closed(tmp_path)
    path.write_bytes(LEDGER_MAGIC + opened + closed)
    assert is_closed(tmp_path)
    path.write_bytes(b"somebody's diary")
    with pytest.raises(VerificationFailed):
        is_closed(tmp_path)


FRAME = link_to(1).control(0)


def senders(folder: Path) -> list[object]:
    return [json.loads(line)["from"] for line in (folder / WIRE_FILE).read_text().splitlines()]


def test_lines_are_appended_to_after_a_restart_and_only_the_owner_reads_them(tmp_path: Path) -> None:
    for life in range(2):
        log = WireLog(tmp_path)
        log(life, FRAME)
        log(-2, FRAME)
        log.close()
        log.close()
    assert senders(tmp_path) == [0, "curator", 1, "curator"]
    assert (tmp_path / WIRE_FILE).stat().st_mode & 0o777 == 0o600


def test_a_torn_line_is_cut_off(tmp_path: Path) -> None:
    log = WireLog(tmp_path)
    log(3, FRAME)
    log.close()
    with (tmp_path / WIRE_FILE).open("ab") as file:
        file.write(b'{"from": 4, "numb')
    log = WireLog(tmp_path)
    log(5, FRAME)
    log.close()
    assert senders(tmp_path) == [3, 5]


def test_a_folder_that_is_none_is_an_error_of_the_world(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotReady, match=WIRE_FILE):
        WireLog(tmp_path / "file")


def test_a_disk_has_a_tap_only_if_it_is_traced(tmp_path: Path) -> None:
    plain, traced = Disk(tmp_path / "a", power=False), Disk(tmp_path / "b", power=False, trace_wire=True)
    assert plain.tap is None
    assert traced.tap is not None
    traced.tap(7, FRAME)
    for disk in (plain, traced):
        disk.close()
        disk.close()
    assert not (tmp_path / "a" / WIRE_FILE).exists()
    assert senders(tmp_path / "b") == [7]


def test_pieces_are_kept_for_their_owner_only_in_place_of_what_follows_them(tmp_path: Path) -> None:
    shelf = Disk(tmp_path, power=False).shelf
    shelf.write(2, 0, b"head", b"first")
    shelf.write(2, 9, b"head", b"second")
    shelf.write(3, 0, b"", b"third")
    assert (shelf.read(2), shelf.read(3), shelf.read(4)) == (b"headfirstheadsecond", b"third", b"")
    shelf.write(2, 4, b"", b"other")
    assert PieceFiles(tmp_path).read(2) == b"headother"
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    shelf.drop(2)
    shelf.drop(2)
    assert (shelf.read(2), shelf.read(3)) == (b"", b"third")
    PieceFiles(tmp_path).write(5, 0, b"", b"fifth")
    (tmp_path / "my.pieces").touch()
    drop_pieces(tmp_path.parent)
    assert shelf.read(5) == b"fifth", "only in this folder"
    drop_pieces(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my.pieces", "private.ledger", "view.ledger"]


def test_what_others_put_on_the_shelf_is_not_read_and_not_written_through(tmp_path: Path) -> None:
    shelf, elsewhere = PieceFiles(tmp_path), tmp_path / "elsewhere"
    elsewhere.write_bytes(b"mine")
    (tmp_path / "0001.pieces").symlink_to(elsewhere)
    (tmp_path / "0002.pieces").hardlink_to(elsewhere)
    os.mkfifo(tmp_path / "0003.pieces")
    with (tmp_path / "0004.pieces").open("wb") as file:
        file.truncate(SHELF_BYTES_MAX + 1)
    assert [shelf.read(peer) for peer in (1, 3, 4)] == [b""] * 3
    for peer in range(1, 5):
        shelf.write(peer, 0, b"head", b"piece")
        assert shelf.read(peer) == b"headpiece"
        assert (tmp_path / f"000{peer}.pieces").stat().st_mode & 0o777 == 0o600
    assert elsewhere.read_bytes() == b"mine"
    shelf.write(5, 9, b"head", b"behind what was not kept")
    assert shelf.read(5) == b""


def test_a_disk_that_has_no_room_for_a_piece_keeps_none_of_that_value_and_goes_on(tmp_path: Path) -> None:
    code = f"""
import resource
from pathlib import Path
from p2pdp.node.disk import PieceFiles
shelf = PieceFiles(Path({str(tmp_path)!r}))
shelf.write(1, 0, b"", bytes(1000))
resource.setrlimit(resource.RLIMIT_FSIZE, (2500, 2500))
shelf.write(1, 1000, b"head", bytes(1000))
assert len(shelf.read(1)) == 2004
shelf.write(1, 2004, b"head", bytes(1000))
assert len(shelf.read(1)) in (0, 2500), len(shelf.read(1))
shelf.write(1, 3008, b"head", bytes(1000))
assert shelf.read(1) == b""
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    (tmp_path / "folder").mkdir()
    gone = PieceFiles(tmp_path / "nowhere")
    gone.write(1, 0, b"", b"piece")
    gone.clear()
    assert gone.read(1) == b""


def test_a_secret_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    secret = durable_secret(tmp_path / "run.key")
    assert durable_secret(tmp_path / "run.key") == secret
    assert durable_secret(tmp_path / "other.key") != secret
    assert (tmp_path / "run.key").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.key", "run.key"]


def test_a_damaged_secret_is_refused_and_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "run.key").write_bytes(b"short")
    with pytest.raises(VerificationFailed):
        durable_secret(tmp_path / "run.key")
    assert (tmp_path / "run.key").read_bytes() == b"short"


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    write_durably(tmp_path / "seat", b"first")
    write_durably(tmp_path / "seat", b"2")
    assert (tmp_path / "seat").read_bytes() == b"2"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the name is made durable too; a crash before leaves the old file as it was."""
    path = tmp_path / "run.key"
    synced: list[tuple[bool, bool]] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        synced.append((path.exists(), stat.S_ISDIR(os.fstat(descriptor).st_mode)))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    write_durably(path, b"secret")
    assert synced == [(False, False), (True, True)]

    def crashes(_descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", crashes)
    with pytest.raises(KeyboardInterrupt):
        write_durably(path, b"other")
    assert path.read_bytes() == b"secret"


def test_a_half_written_file_of_a_crash_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / "run.key.half").write_bytes(b"a longer text than the secret that was to be written here")
    secret = durable_secret(tmp_path / "run.key")
    assert (tmp_path / "run.key").read_bytes() == secret
    assert [path.name for path in tmp_path.iterdir()] == ["run.key"]


def test_where_nothing_can_be_written_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotReady):
        durable_secret(tmp_path / "file" / "run.key")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NotReady, match="No space left"):
        durable_secret(tmp_path / "run.key")
    assert not (tmp_path / "run.key").exists()
