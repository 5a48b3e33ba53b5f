"""Commands that are forked are to tests what commands that are started are."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from p2pdp.files.samples import samples
from tests.support.forked import Forked, run

RING = next(str(sample.path) for sample in samples() if sample.name == "ring_sum")


def test_they_say_and_leave_what_a_fresh_interpreter_does(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("forked", "started")]
    for words in (["simulate", RING, "--out", "run", "--json"], ["audit", "run"], ["audit", "nowhere"], ["nothing"]):
        for folder in folders:
            folder.mkdir(exist_ok=True)
        forked = run(*words, cwd=folders[0])
        command = [sys.executable, "-m", "p2pdp", *words]
        started = subprocess.run(command, cwd=folders[1], capture_output=True, text=True, check=False)
        assert (forked.returncode, forked.stderr) == (started.returncode, started.stderr)
        assert forked.stdout.replace(str(folders[0]), str(folders[1])) == started.stdout


def test_none_knows_of_another_or_of_its_starter(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out:
        one, other = (
            Forked(
                [],
                main="os:execvp",
                arguments=["sh", ["sh", "-c", script]],
                cwd=tmp_path,
                environment={"A": "1"},
                stdout=out,
                session=True,
            )
            for script in (
                "kill -STOP $$; exit 3",
                "trap '' HUP; pwd; env | grep ^A; ls /proc/$$/fd | wc -l; sleep 600",
            )
        )
        while (tmp_path / "out").read_text().count("\n") < 3:
            assert other.poll() is None
    assert (tmp_path / "out").read_text().split() == [str(tmp_path), "A=1", "3"]
    assert one.poll() is None
    one.send_signal(signal.SIGCONT)
    assert one.wait(60) == 3
    other.kill()
    assert other.wait(60) == other.poll() == -signal.SIGKILL


def test_an_interrupt_is_answered_as_by_a_command(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(Path(RING).read_text())
    (tmp_path / "err").touch()
    with (tmp_path / "err").open("wb") as err:
        waits = Forked(
            ["bootstrap", "spec.toml", "--listen", "127.0.0.1:0", "--tokens", "12", "--out", "boot"],
            cwd=tmp_path,
            stderr=err,
        )
    while "listening on" not in (tmp_path / "err").read_text():
        assert waits.poll() is None
    waits.send_signal(signal.SIGINT)
    assert waits.wait(60) == 130
