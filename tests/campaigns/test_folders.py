"""Folders with a changed file: each mutation once, with verify and one more command."""

from __future__ import annotations

from pathlib import Path

from tests.campaigns.folders import COMMANDS, FOLDERS, arguments_of, command, finished


def test_changed_files_are_found_or_do_no_harm() -> None:
    kinds = set()
    for seed in range(16):
        judged = FOLDERS.run("walk.sum", seed)
        assert judged.violations == [], judged.story
        kinds |= judged.counts.keys()
    assert len(kinds) > 5


def test_commands_succeed_on_what_nobody_changed(tmp_path: Path) -> None:
    for verb in COMMANDS[:-1]:
        assert command(*arguments_of(verb, finished("walk.sum"), tmp_path))[0] == 0
