"""The guide's page `messages`: every message and every record, made from their declarations.

To write the page again: `python -c "from p2pdp.files.reference_messages import write; write()"`. A test compares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from p2pdp.core.fields import fields_of
from p2pdp.core.messages import COMMON, MessageTable, MessageType, Value
from p2pdp.files.guide import FOLDER
from p2pdp.files.reference import table
from p2pdp.ledger.bodies import BODIES
from p2pdp.ledger.records import KIND_NAMES
from p2pdp.protocols import ours, protocol

_INTRODUCTION: Final = """\
# Messages and records

What peers send each other inside their encrypted channels, and what a ledger says of it in public. This page is made
from the tables by which hosts and auditors check: a host refuses a message of another form on receipt, and `p2pdp
verify` finds one in a ledger. Values are carried apart from the fields; a skeleton holds their digests only.
*Custody* marks what must not get lost: after an exclusion its item is sent again. *Droppable* marks what a peer that
has closed need not take.
"""
_RECORDS: Final = """\
## Records

A record's public part begins with its kind. This is how a user's view opens; other ledgers open with the first three
fields.
"""
_VALUES: Final = {Value.NONE: "", Value.MAYBE: "maybe", Value.ALWAYS: "yes", Value.FILLER: "filler"}
_HEADINGS: Final = ("message", "fields", "value", "from and to", "", "what it says")


def write() -> None:
    """Write the page into the package's folder."""
    (FOLDER / "messages.md").write_text(messages_page(), "utf-8")


def messages_page() -> str:
    """Return the page."""
    parts = [_INTRODUCTION, "## Messages of every protocol\n\n" + table(_HEADINGS, map(_row, COMMON))]
    for names, own in _own_messages():
        title = ", ".join(f"`{name}`" for name in names)
        parts.append(f"## Messages of {title}\n\n" + table(_HEADINGS, map(_row, own)))
    rows = [(f"`{name}`", _fields(body)) for name, body in zip(KIND_NAMES, BODIES, strict=True)]
    parts.append(_RECORDS + "\n" + table(("record", "fields"), rows))
    return "\n".join(parts)


def _own_messages() -> Iterator[tuple[list[str], list[MessageType]]]:
    """Yield the messages that protocols add, each with all protocols that add these."""
    tables: dict[int, tuple[list[str], MessageTable]] = {}
    for name in ours():
        found = protocol(name).messages
        tables.setdefault(id(found), ([], found))[0].append(name)
    for names, found in tables.values():
        own = [one for one in found if COMMON.get(one.name) is None]
        if own:
            yield names, own


def _row(one: MessageType) -> Iterable[str]:
    marks = ", ".join(mark for mark, is_so in (("custody", one.custody), ("droppable", one.droppable)) if is_so)
    return (f"`{one.name}`", _fields(one.fields), _VALUES[one.value], one.routes, marks, one.meaning)


def _fields(shape: type[Any]) -> str:
    return ", ".join(f"`{name}`: {kind}" for name, kind in fields_of(shape))
