"""The root of trust of a run: bootstrap's public identity key, which signs the roster.

Whoever verifies a run names the key that it got from bootstrap; a node's folder remembers the key that the node
enrolled with. Without either the key in the folder is believed, and then a run that somebody made up verifies as well.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from p2pdp.core.errors import P2pdpError, UsageError
from p2pdp.crypto.identity import KEY_BYTES
from p2pdp.crypto.tokens import JoinToken
from p2pdp.files.folder import holds, read_document
from p2pdp.files.reading import read_text
from p2pdp.node.folder import NODE_FILE

UNPINNED: Final = (
    "whether this is the run that you mean: the root of trust is the key in what was verified, whoever made that; "
    "--bootstrap KEY names the key that you have from bootstrap"
)
_OPTION: Final = "--bootstrap"
_TEXT_MAX: Final = 512  # a join token, at most; a longer text is the name of no file
_TOKEN: Final = "p2pdp1:"


def pinned_key(given: str | Path | None, place: Path) -> bytes | None:
    """Return the key that was given, or else the one that the node of this folder enrolled with; None without either.

    `given` is the key in hexadecimal, a join token, or a file that holds one of the two.
    """
    if given is None:
        return _enrolled_with(place)
    text = str(given).strip()
    if not _is_key(text) and not text.startswith(_TOKEN):
        text = _in_file(text)
    if text.startswith(_TOKEN):
        return JoinToken.from_text(text).bootstrap_public
    if not _is_key(text):
        raise UsageError(f"{_OPTION} {given}: must be bootstrap's public key in hexadecimal, or a file that holds it")
    return bytes.fromhex(text)


def _in_file(name: str) -> str:
    try:
        return read_text(Path(name))[:_TEXT_MAX].strip()
    except UsageError as error:
        raise UsageError(f"{_OPTION} {error}") from None


def _is_key(text: str) -> bool:
    try:
        return len(bytes.fromhex(text)) == KEY_BYTES
    except ValueError:
        return False


def _enrolled_with(place: Path) -> bytes | None:
    try:
        known = read_document(place, NODE_FILE).get("bootstrap") if holds(place, NODE_FILE) else None
    except P2pdpError:
        return None
    return bytes.fromhex(known) if isinstance(known, str) and _is_key(known) else None
