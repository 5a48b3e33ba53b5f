from __future__ import annotations

import re

import pytest

from p2pdp.core.errors import UsageError
from p2pdp.files.guide import FOLDER, TOPICS, page, titles
from tests.support.sources import TOP


def test_each_file_is_a_topic_and_each_topic_a_file() -> None:
    assert sorted(place.stem for place in FOLDER.glob("*.md")) == sorted(TOPICS)


@pytest.mark.parametrize("topic", TOPICS)
def test_a_page_has_one_title_and_links_to_pages_that_are_there(topic: str) -> None:
    found = page(topic)
    assert found.text.startswith(f"# {found.title}\n\n")
    fenced = re.sub(r"^```.*?^```$", "", found.text, flags=re.MULTILINE | re.DOTALL)
    assert len(re.findall(r"^# ", fenced, re.MULTILINE)) == 1
    linked = re.findall(r"\]\((?!https://)([^)#]*)", found.text)
    assert {name for name in linked if name.removesuffix(".md") not in TOPICS} == set()


def test_the_readme_leads_to_each_page() -> None:
    """By itself, or by a page that it leads to."""
    left = re.findall(r"\]\(p2pdp/guide/([a-z]+)\.md", (TOP / "README.md").read_text())
    assert len(left) > len(TOPICS) / 2
    reached = set[str]()
    while left:
        reached.add(topic := left.pop())
        left += [other for other in re.findall(r"\]\(([a-z]+)\.md", page(topic).text) if other not in reached]
    assert reached == set(TOPICS)


def test_titles_are_those_of_the_pages() -> None:
    assert list(titles()) == list(TOPICS)
    assert titles()["trust"] == page("trust").title


@pytest.mark.parametrize("name", ["", "nothing", "../files/guide", "views.md"])
def test_an_unknown_topic_names_those_there_are(name: str) -> None:
    with pytest.raises(UsageError, match="epsilon, records, trust"):
        page(name)


def test_a_page_as_json() -> None:
    assert page("trust").to_json().keys() == {"topic", "title", "text"}
