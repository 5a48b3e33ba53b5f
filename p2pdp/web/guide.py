"""Pages of the guide as HTML: Markdown by `markdown-it`, in the style of the report.

Raw HTML in a page is escaped, so that text can never become an element. A page needs nothing from anywhere else, and
links between pages (`trust.md`) lead to where this server shows them (`/guide/trust`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from p2pdp.report.page.markup import Markup, Section, document, join, tag

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

PREFIX: Final = "/guide"
_PAGE_LINK: Final = re.compile(r"([a-z]+)\.md(#[\w-]*)?")
_WIDE: Final = '<div class="wide" tabindex="0" role="group">'


def guide_page(text: str, titles: Mapping[str, str]) -> str:
    """Return one page; `titles` names all topics, for the links to the other pages."""
    markdown = _markdown()
    tokens = markdown.parse(text)
    _lead_links(tokens, titles)
    heading, opening, rest = _parted(tokens)
    sections = []
    for place, (name, part) in enumerate(rest):
        body = Markup(markdown.renderer.render(part, markdown.options, {}))
        sections.append(Section(f"{_slug(name)}-{place + 1}", name, name, [body]))
    first = Markup(markdown.renderer.render(opening, markdown.options, {}))
    return document(f"{heading} (p2pdp guide)", heading, [first], sections, _others(titles))


def guide_list(titles: Mapping[str, str]) -> str:
    """Return the list of all pages."""
    return document("p2pdp guide", "Guide", [_others(titles)], [], "")


def _others(titles: Mapping[str, str]) -> Markup:
    entries = [tag("li", tag("a", title, href=f"{PREFIX}/{topic}")) for topic, title in titles.items()]
    return tag("ul", join(entries))


def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt

    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    markdown.add_render_rule("table_open", lambda *_: f"{_WIDE}<table>")
    markdown.add_render_rule("table_close", lambda *_: "</table></div>")
    return markdown


def _lead_links(tokens: Sequence[Token], titles: Mapping[str, str]) -> None:
    """Rewrite links to other pages to where they are served."""
    for token in tokens:
        for child in token.children or ():
            match = _PAGE_LINK.fullmatch(str(child.attrGet("href") or "")) if child.type == "link_open" else None
            if match is not None and match[1] in titles:
                child.attrSet("href", f"{PREFIX}/{match[1]}")


def _parted(tokens: Sequence[Token]) -> tuple[str, list[Token], list[tuple[str, list[Token]]]]:
    """Return the title, what comes before the first section, and each section with its name."""
    title = ""
    opening: list[Token] = []
    sections: list[tuple[str, list[Token]]] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        if token.type == "heading_open" and token.tag in ("h1", "h2"):
            name = tokens[place + 1].content.replace("`", "")
            if token.tag == "h1":
                title = name
            else:
                sections.append((name, []))
            place += 3
            continue
        (sections[-1][1] if sections else opening).append(token)
        place += 1
    return title, opening, sections


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "section"
