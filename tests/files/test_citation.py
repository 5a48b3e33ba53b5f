from __future__ import annotations

import re
import tomllib

import pytest

import p2pdp
from p2pdp.core.errors import UsageError
from p2pdp.files.citation import FILE, FORMATS, citation, facts_of
from p2pdp.files.guide import page
from tests.support.sources import TOP

PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]


def test_the_file_says_what_the_project_says() -> None:
    text = FILE.read_text()
    facts = facts_of(text)
    assert facts["version"] == PROJECT["version"] == p2pdp.__version__
    assert (facts["title"], facts["abstract"]) == (PROJECT["name"], PROJECT["description"])
    assert facts["license"] == PROJECT["license"]
    assert [{"name": facts["author"]}] == PROJECT["authors"]
    assert re.findall(r"^  - (?!name:)(.+)$", text, re.MULTILINE) == PROJECT["keywords"]


def test_it_has_what_the_format_requires() -> None:
    facts = facts_of(FILE.read_text())
    assert facts["cff-version"] == "1.2.0"
    assert {"message", "title", "author"} <= facts.keys()
    assert facts["type"] == "software"


def test_version_and_date_are_the_newest_of_the_changelog() -> None:
    facts = facts_of(FILE.read_text())
    newest = re.findall(r"^## (\S+) \((\S+)\)$", page("changelog").text, re.MULTILINE)[0]
    assert newest == (facts["version"], facts["date-released"])


@pytest.mark.parametrize("form", FORMATS)
def test_each_form_names_author_title_version_and_year(form: str) -> None:
    facts, text = facts_of(FILE.read_text()), citation(form)
    for key in ("author", "title", "version", "license", "abstract"):
        assert facts[key] in text
    assert facts["date-released"][:4] in text
    assert not text.endswith("\n")


def test_bibtex_is_balanced_and_quotes_nothing_special() -> None:
    text = citation("bibtex")
    assert text.startswith("@misc{p2pdp-")
    assert text.count("{") == text.count("}")
    assert not set(text) & set("%&#_$\\~")


def test_another_form_is_refused() -> None:
    with pytest.raises(UsageError, match="bibtex"):
        citation("ris")
