"""The commands of a run across machines: `bootstrap`, `node`. What happens is told on the error stream."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from p2pdp.cli.options import AsJson, Overrides, SpecFile, print_document

if TYPE_CHECKING:
    from p2pdp.runs.across_node import TookPart

NewFolder = Annotated[Path, typer.Option(metavar="DIR", help="The folder to fill, or to go on with.")]


def bootstrap(
    spec: SpecFile,
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where to listen; port 0 takes a free one.")],
    tokens: Annotated[int, typer.Option(metavar="N", help="How many join tokens to write.")],
    out: NewFolder,
    address: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="What tokens name, where others reach this machine elsewhere."),
    ] = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Runs bootstrap and curator for users elsewhere."""
    from p2pdp.cli.live import show
    from p2pdp.files.spec import load_spec
    from p2pdp.runs.across_bootstrap import Places
    from p2pdp.runs.across_bootstrap import bootstrap as serve

    loaded = load_spec(spec, overrides or [])
    show(serve(loaded, Places(listen, address), tokens, out, say), as_json=as_json)


def node(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="The node's configuration: a TOML file.")],
    out: NewFolder,
    share_skeleton: Annotated[
        bool, typer.Option("--share-skeleton", help="Hands in the ledger without values, for everybody's audit.")
    ] = False,
    keep_private: Annotated[
        bool, typer.Option("--keep-private", help="Keeps inputs and draws when the run closes.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Runs one user's node in a run across machines."""
    from p2pdp.runs.across_node import take_part

    told = take_part(config, out, share_skeleton=share_skeleton, keep_private=keep_private, say=say)
    if told.excluded:
        say("bootstrap put this node out of the run: it was silent for too long, and the others went on without it")
    if as_json:
        print_document(told.to_json())
    else:
        _show(told)


def _show(told: TookPart) -> None:
    from rich.console import Console

    from p2pdp.cli.tables import number, plain

    console = Console(highlight=False)
    lines = [f"{told.protocol}, run {told.run_id}, user {told.user} of {told.nodes}"]
    if not told.excluded:
        lines.append(f"estimate {number(told.estimate)}, standard error {number(told.standard_error)}")
    if told.own_scores is not None:
        known = [f"{name} {number(value)}" for name, value in told.own_scores.items() if value is not None]
        lines.append(f"on your own rows: {', '.join(known)}")
    lines.append(f"{told.folder}: what this node saw, says: p2pdp views {told.folder}")
    for line in lines:
        console.print(plain(line), soft_wrap=True)


def say(text: str) -> None:
    """One line for people; what others wrote cannot move the cursor."""
    line = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
    print(line, file=sys.stderr, flush=True)
