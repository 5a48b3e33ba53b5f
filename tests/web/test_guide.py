from __future__ import annotations

from html.parser import HTMLParser

import pytest

from p2pdp.files.guide import TOPICS, page, titles
from p2pdp.report.page.style import POLICY
from p2pdp.web.guide import guide_list, guide_page

TITLES = {"trust": "Whom to trust", "walks": "Walks"}
LOADING = {"script", "img", "link", "iframe", "object", "embed", "base", "form", "audio", "video"}


class Elements(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        given = dict(attrs)
        self.attributes |= set(given)
        self.links += [str(given["href"])] if "href" in given else []
        self.ids += [str(given["id"])] if "id" in given else []


@pytest.mark.parametrize("topic", TOPICS)
def test_each_page_loads_nothing_and_links_only_to_what_is_served(topic: str) -> None:
    found = Elements(guide_page(page(topic).text, titles()))
    assert not LOADING & set(found.names)
    assert not {name for name in found.attributes if name.startswith("on") or name in ("src", "style")}
    assert len(set(found.ids)) == len(found.ids)
    inside = {f"/guide/{other}" for other in TOPICS} | {f"#{name}" for name in found.ids}
    assert {link for link in found.links if link not in inside and not link.startswith("https://")} == set()


def test_html_in_a_page_is_shown_and_never_obeyed() -> None:
    text = "# A\n\n<script>alert(1)</script> <b onclick='x'>b</b>\n\n[x](javascript:alert(1))\n\n## <img src=x>\n"
    shown = guide_page(text, TITLES)
    found = Elements(shown)
    assert not {"script", "b", "img"} & set(found.names)
    assert "onclick" not in found.attributes
    assert not [link for link in found.links if link.startswith("javascript")]
    assert "&lt;script&gt;" in shown


def test_titles_sections_tables_and_links() -> None:
    table = "| x | y |\n|---|---|\n| 1 | 2 |\n"
    text = f"# A *b*\n\nFirst. See [t](trust.md) and [u](other.md).\n\n## One\n\n{table}\n## One\n\nz\n"
    shown = guide_page(text, TITLES)
    found = Elements(shown)
    assert found.names.count("h1") == 1
    assert found.names.count("table") == 1
    assert {"one-1", "one-2"} <= set(found.ids)
    assert "/guide/trust" in found.links
    assert "other.md" in found.links
    assert POLICY.partition("style-src")[0] in shown.replace("&#x27;", "'")


def test_the_list_names_each_topic() -> None:
    assert [link for link in Elements(guide_list(TITLES)).links if link.startswith("/")] == [
        "/guide/trust",
        "/guide/walks",
    ]
