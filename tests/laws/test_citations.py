"""Everything that code and documents refer to is there: works by their keys, and files of the repository."""

from __future__ import annotations

import re
import subprocess
from functools import lru_cache

import pytest

from tests.support.sources import TOP

GUIDE = "p2pdp/guide"
REFERENCES = f"{GUIDE}/references.md"
TEXTS = (".py", ".md", ".toml", ".yaml", ".yml", ".service", ".conf", "Dockerfile")
CITED = re.compile(r"(?<![\w\]])\[([A-Z]{1,6}\d\d)(?:,[^\]\n]*(?:\n[^\]\n]*)?)?\]")
KEY = re.compile(r"^\| \[([A-Z]{1,6}\d\d)\] \|", re.MULTILINE)
DOCUMENT = re.compile(r"(?<![\w{}*])([\w./-]*\w\.md)\b")
MODULE = re.compile(r"`((?:[\w.]+/)*[a-z_]+\.py)`")
ELSEWHERE = re.compile(
    r"papers?/\d|\b[Aa]ccounting notes?\b|\bdesign(?:\.md)?,? section|\b" + "issue" + r" \d+\b|\bcontract\.md\b"
)


@lru_cache
def texts() -> dict[str, str]:
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=TOP, capture_output=True, text=True, check=True).stdout.split("\0")
    return {name: (TOP / name).read_text("utf-8") for name in names if name.endswith(TEXTS) and (TOP / name).is_file()}


def unknown_keys(name: str, text: str, known: frozenset[str]) -> list[str]:
    return [f"{name}: [{key}] is not in {REFERENCES}" for key in CITED.findall(text) if key not in known]


def missing_documents(name: str, text: str, names: frozenset[str]) -> list[str]:
    """Documents that are named and are neither below the top, nor beside the file, nor pages of the guide."""
    folder = name.rpartition("/")[0]
    found = []
    for path in DOCUMENT.findall(text):
        places = {path, f"{folder}/{path}", f"p2pdp/{path}", f"{GUIDE}/{path}"}
        if not places & names:
            found.append(f"{name}: {path} is not there")
    return found


def missing_modules(name: str, text: str, names: frozenset[str]) -> list[str]:
    """Modules that are named by a path, or its end, and are nowhere."""
    known = {"/" + one for one in names}
    return [
        f"{name}: {path} is not there"
        for path in MODULE.findall(text)
        if not any(one.endswith("/" + path) for one in known)
    ]


def foreign_references(name: str, text: str) -> list[str]:
    return [f"{name}: {match[0]}" for match in ELSEWHERE.finditer(text)]


# Names of documents that tests make up, and this file, which shows what is wrong.
MADE_UP = (
    "tests/laws/",
    "tests/web/",
    "tests/cli/test_guide.py",
    "tests/files/test_guide.py",
    "tests/experiments/test_runner.py",
)


def test_each_citation_has_its_work() -> None:
    known = frozenset(KEY.findall(texts()[REFERENCES]))
    assert len(known) > 15
    assert [
        said for name, text in texts().items() if name not in ON_PURPOSE for said in unknown_keys(name, text, known)
    ] == []


def test_each_work_is_cited() -> None:
    cited = {key for name, text in texts().items() if name != REFERENCES for key in CITED.findall(text)}
    assert sorted(set(KEY.findall(texts()[REFERENCES])) - cited) == []


def test_documents_that_are_named_are_in_the_repository() -> None:
    linked = {name.replace("p2pdp/samples/", "deploy/samples/") for name in texts()}  # a link to that folder
    names = frozenset(texts()) | linked
    said = [
        one
        for name, text in texts().items()
        if not name.startswith(MADE_UP)
        for one in missing_documents(name, text, names)
    ]
    assert said == []


def test_modules_that_are_named_are_in_the_repository() -> None:
    names = frozenset(name for name in texts() if name.endswith(".py"))
    said = [
        one for name, text in texts().items() if name not in ON_PURPOSE for one in missing_modules(name, text, names)
    ]
    assert said == []
    assert missing_modules("x.py", "see `walk/gone.py` and `walk/sgd.py`", names) == ["x.py: walk/gone.py is not there"]


def test_nothing_refers_to_what_is_elsewhere() -> None:
    assert [
        said for name, text in texts().items() if name not in ON_PURPOSE for said in foreign_references(name, text)
    ] == []


ON_PURPOSE = ("tests/laws/test_citations.py",)


@pytest.mark.parametrize("text", ["see [XY99]", "see [XY99, Theorem 3]", "see [XY99,\n    Theorem 3]"])
def test_an_unknown_key_is_seen(text: str) -> None:
    assert len(unknown_keys("a.py", text, frozenset(["CB20"]))) == 1
    assert unknown_keys("a.py", text, frozenset(["XY99"])) == []


def test_indices_and_links_are_no_citations() -> None:
    assert unknown_keys("a.py", "x = table[AB12]; y = [1, 2]; [text](a.md)", frozenset()) == []


def test_a_missing_document_is_seen() -> None:
    names = frozenset(["README.md", f"{GUIDE}/walks.md", "deploy/notes.md"])
    good = "README.md, guide/walks.md, walks.md, p2pdp/guide/walks.md, *.md, {topic}.md"
    assert missing_documents("a/b.py", good, names) == []
    assert missing_documents("deploy/b.py", "notes.md", names) == []
    assert len(missing_documents("a/b.py", "notes.md, ../x.md", names)) == 2


@pytest.mark.parametrize(
    "text", ["`papers/004`", "accounting notes, section 1", "(design, section 5)", "see contract.md"]
)
def test_a_foreign_reference_is_seen(text: str) -> None:
    assert len(foreign_references("a.py", text)) == 1
