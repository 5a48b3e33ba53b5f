"""What the repository may hold: few things on top, no large file, no path of one machine, no secret."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.support.sources import TOP

ON_TOP = frozenset(["pyproject.toml", "README.md", "LICENSE", "docker-compose.yml", "deploy", "p2pdp", "tests"])
FILE_BYTES_MAX = 300_000
REGISTRIES = (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("npmjs", "com"), ("crates", "io"))


def held() -> list[str]:
    """Every file that is tracked, or would be by `git add`."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=TOP, capture_output=True, text=True, check=True).stdout.split("\0")
    return sorted({name for name in names if name and (TOP / name).is_file()})


def strangers(names: list[str]) -> list[str]:
    tops = {name.split("/")[0] for name in names}
    return sorted(top for top in tops if top not in ON_TOP and not top.startswith("."))


def own_paths(top: Path, home: Path, temporary: Path) -> list[str]:
    """The folders of this machine that no file may name: the checkout, what it lies in, and home."""
    shared = {Path("/"), temporary}
    return [f"{folder.as_posix()}/" for folder in (top, top.parent, home) if folder not in shared]


def forbidden(paths: list[str]) -> dict[str, re.Pattern[str]]:
    """What no file may hold; written so that this file does not hold it either."""
    registries = "|".join(r"\.".join(parts) for parts in REGISTRIES)
    return {
        "a path of this machine": re.compile("|".join(rf"(?<![\w.~-]){re.escape(path)}" for path in paths)),
        "a path of somebody's home": re.compile(r"/(?:home|Users)/[a-z]\w*/"),
        "the name of a package registry": re.compile(rf"\b(?:{registries})\b"),
        "a private key": re.compile(r"-{5}BEGIN [A-Z ]*PRIVATE KEY"),
        "an unfinished merge": re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE),
    }


def findings(name: str, text: str, patterns: dict[str, re.Pattern[str]]) -> list[str]:
    """Each finding as file, line and kind; what was found is not repeated."""
    return [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {kind}"
        for kind, pattern in patterns.items()
        for match in pattern.finditer(text)
    ]


PATTERNS = forbidden(own_paths(TOP, Path.home(), Path(tempfile.gettempdir())))


def test_the_top_holds_only_what_belongs_there() -> None:
    assert strangers(held()) == []


def test_no_file_is_large() -> None:
    assert [name for name in held() if (TOP / name).stat().st_size > FILE_BYTES_MAX] == []


def test_no_file_holds_what_is_forbidden() -> None:
    texts = {name: (TOP / name).read_text("utf-8", errors="replace") for name in held()}
    assert [found for name, text in texts.items() for found in findings(name, text, PATTERNS)] == []


def test_this_file_is_among_those_looked_at() -> None:
    assert "tests/laws/test_repo.py" in held()


def test_a_stranger_is_seen() -> None:
    assert strangers(["notes.md", "README.md", ".ci/run", "p2pdp/core/ids.py", "scripts/a.py"]) == [
        "notes.md",
        "scripts",
    ]


@pytest.mark.parametrize(
    "text",
    [
        f"open('{TOP}/p2pdp')",
        f"look into {Path.home()}/notes",
        "x = '/home" + "/somebody/data.csv'",
        "index = https://" + "pypi" + ".org/simple",
        "-" * 5 + "BEGIN RSA PRIVATE KEY" + "-" * 5,
        "a\n" + "<" * 7 + " HEAD\n",
    ],
)
def test_what_is_forbidden_is_seen(text: str) -> None:
    assert findings("a.md", text, PATTERNS) != []


def test_the_place_is_told_and_common_folders_are_free() -> None:
    paths = own_paths(Path("/srv/clone"), Path("/h/me"), Path("/tmp"))  # noqa: S108 - never opened
    assert paths == ["/srv/clone/", "/srv/", "/h/me/"]
    assert own_paths(Path("/tmp/clone"), Path("/"), Path("/tmp")) == ["/tmp/clone/"]  # noqa: S108 - never opened
    assert findings("a.md", "fine\nsee /srv/clone/x", forbidden(["/srv/clone/"])) == ["a.md:2: a path of this machine"]
    assert findings("a.md", "see docs/srv/x and https://a/srv/", forbidden(["/srv/"])) == []
