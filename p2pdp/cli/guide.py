"""`p2pdp guide`: the documentation that comes with the package."""

from __future__ import annotations

import re
import sys
from typing import Annotated, Final

import typer

from p2pdp.cli.options import AsJson, print_columns, print_document

_WIDTH_MAX: Final = 100
_FENCE: Final = re.compile(r"^```\w+$", re.MULTILINE)
_LINK: Final = re.compile(r"\[([^\]]+)\]\(([a-z]+)\.md(?:#[\w-]*)?\)")


def guide(
    topic: Annotated[str | None, typer.Argument(metavar="TOPIC", help="The page to show; without it, a list.")] = None,
    as_json: AsJson = False,
) -> None:
    """Shows a page of the documentation."""
    from p2pdp.files.guide import page, titles

    if topic is None:
        _list(titles(), as_json=as_json)
        return
    found = page(topic)
    if as_json:
        print_document(found.to_json())
    elif sys.stdout.isatty():
        _show(found.text)
    else:
        print(found.text, end="")


def _list(titles: dict[str, str], *, as_json: bool) -> None:
    if as_json:
        print_document({"topics": [{"topic": topic, "title": title} for topic, title in titles.items()]})
        return
    print_columns(titles.items())
    print("\np2pdp guide TOPIC shows a page.")


def for_terminal(text: str) -> str:
    """Return the page with links to other pages written as commands, and code without colours."""
    return _FENCE.sub("```", _LINK.sub(r"\1 (`p2pdp guide \2`)", text))


def _show(text: str) -> None:
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console()
    console.print(Markdown(for_terminal(text), code_theme="ansi_dark"), width=min(console.width, _WIDTH_MAX))
