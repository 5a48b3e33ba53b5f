"""The guide: Markdown pages that come with the package, one for each topic, in `p2pdp/guide/`.

`TOPICS` lists them in reading order. The first line of a page is its title.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from p2pdp.core.errors import UsageError

FOLDER: Final = Path(__file__).parent.parent / "guide"
TOPICS: Final = (
    "epsilon", "records", "trust", "security", "views", "walks", "gossip", "pairwise", "shuffling", "learning",
    "python", "running", "machines", "sweep", "artifact", "web", "spec", "commands", "papers", "limits", "accounting",
    "protocols", "architecture", "messages", "states", "glossary", "references", "changelog",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Page:
    topic: str
    title: str
    text: str

    def to_json(self) -> dict[str, str]:
        return asdict(self)


def page(topic: str) -> Page:
    """Return the page on this topic; an unknown topic is a `UsageError` that names all topics."""
    if topic not in TOPICS:
        raise UsageError(f"{topic}: the guide has no such topic; topics are {', '.join(TOPICS)}.")
    text = (FOLDER / f"{topic}.md").read_text("utf-8")
    return Page(topic, text.partition("\n")[0].removeprefix("# "), text)


def titles() -> dict[str, str]:
    """Return the title of each topic's page, in reading order."""
    return {topic: page(topic).title for topic in TOPICS}
