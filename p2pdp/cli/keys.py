"""`p2pdp keygen`: an identity, an auditor's key, or all that a broker and its users need to know each other."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from p2pdp.cli.options import AsJson, print_document
from p2pdp.core.addresses import ROLES_STATION, user_station
from p2pdp.core.errors import UsageError

TLS_PORT = 8883


def keygen(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to create.")],
    tls: Annotated[bool, typer.Option("--tls", help="Makes certificates and settings for a broker instead.")] = False,
    auditor: Annotated[
        bool, typer.Option("--auditor", help="Makes an auditor's key instead, to which nodes seal their skeletons.")
    ] = False,
    name: Annotated[
        list[str] | None, typer.Option(metavar="HOST", help="With --tls: host name of the broker; repeatable.")
    ] = None,
    user: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="With --tls: name of a user of the broker; repeatable.")
    ] = None,
    nodes: Annotated[
        int, typer.Option(help="With --tls: number of further users, node-0000 and so on, and bootstrap.")
    ] = 0,
    certificates: Annotated[
        bool, typer.Option("--certificates", help="With --tls: gives users certificates instead of passwords.")
    ] = False,
    port: Annotated[int, typer.Option(help="With --tls: port of the broker.")] = TLS_PORT,
    place: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="With --tls: place of DIR/broker on the broker's machine, beside its data."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Makes an identity: a secret signing key and its public half."""
    from p2pdp import api

    if tls and auditor:
        raise UsageError("--tls, --auditor: make two folders, one with each")
    if not tls:
        if name or user or nodes or certificates or place or port != TLS_PORT:
            raise UsageError("--name, --user, --nodes, --certificates, --port and --place: only with --tls")
        public = api.keygen(out, auditor=auditor)
        if as_json:
            print_document({"auditor" if auditor else "identity": public, "folder": str(out)})
        elif auditor:
            print(f'{out}: auditor\'s key; in a spec: [audit] key = "{public}"')
        else:
            print(f"{out}: identity {public}; keep identity.key secret")
        return
    from p2pdp.files.keys import BrokerWishes, write_broker_folder

    if nodes < 0 or not 0 < port < 1 << 16:
        raise UsageError("--nodes: must not be negative; --port: must be from 1 to 65535")
    users = [*(user or ()), *(map(str, (ROLES_STATION, *map(user_station, range(nodes)))) if nodes else ())]
    wishes = BrokerWishes(name or ["localhost", "127.0.0.1"], users, port, certificates, place)
    write_broker_folder(out, wishes, datetime.now(UTC))
    if as_json:
        print_document({"folder": str(out), "names": list(wishes.names), "users": users})
        return
    print(f"{out}/broker: for the broker, mosquitto -c {out}/broker/mosquitto.conf")
    if users:
        print(f"{out}/users: a folder for each of {len(users)} users, to be given over a way that both trust")
    print(f"{out}/ca.key: stays with you")
