"""Reads the configuration of one user's node: a TOML file of its owner.

    [node]       identity, token, listen; address
    [data]       as in a spec; `clip` is the spec's, and one given here has to be the same
    [accept]     protocols, mechanisms, sigma_min, sampler, clip, hops, laps, tokens, rounds, min_live,
                 epsilon, epsilon_max, observer, delta, peers, model
    [budget]     epsilon; delta, observer, unit, ledger
    [transport]  as in a spec: as whom this node comes to the broker that its token names, if it names one

`identity` is the file that `p2pdp keygen` made, `token` the file that bootstrap wrote or the token itself,
`address` what other machines are told, where that is not what the node listens on. All of `[accept]` is
optional, and what is not given is not asked for, but that a run without noise is refused unless `mechanisms` names
"none":

    sigma_min           the least standard deviation, in data units, of any draw of noise for contributions; noise on
                        messages of gossip does not count, and mechanisms without a standard deviation are refused. On
                        a ring few contributions have a draw of their own: there epsilon_max says what a run costs
    sampler             "exact": noise of the fast sampler is refused
    clip                the run's bounds have to lie within these
    hops, laps, tokens  the most of each that a walk may have
    rounds              the most rounds of gossip or shuffling; of learning by gossip, the most gradients
    min_live            the fewest users that have to be left to the end: the run has to promise as many
    epsilon             the most that randomized response, PrivUnit or Laplace noise may cost for one contribution
    epsilon_max         the most that the run may cost, at the spec's delta, against `observer` (as in `[budget]`)
    unit                what epsilon_max is about: "user" (all of this node's rows) or "record" (each row by itself)
    delta               the most that the spec's delta may be; 1e-3 where only `epsilon_max` is given
    peers               the identities that neighbours must have, in hexadecimal, as a list or a file with one a line
                        (text after it is a comment)
    model               the digest of the code that `[task] model` or `kind` names; without it, a run that asks for such
                        code is refused, and the digest of what is installed is told

Guarantee: an unknown section or key is named with the one that was meant, and every error names the file.
Relative paths are relative to the file. Secrets are in no `repr`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from p2pdp.core.addresses import Address, AddressError, is_wildcard, split_address
from p2pdp.core.claims import Observer, Unit
from p2pdp.core.errors import UsageError
from p2pdp.core.readers import (
    HOPS,
    LAPS,
    POSITIVE,
    ROUNDS,
    SHARE,
    TOKENS,
    Distinct,
    Either,
    Reader,
    Unfit,
    bounds,
    one_of,
    suggestion,
    text,
)
from p2pdp.core.spec import DataPart, TransportPart
from p2pdp.crypto.identity import KEY_BYTES, Identity
from p2pdp.crypto.tokens import JoinToken
from p2pdp.files.keys import read_identity
from p2pdp.files.model_code import is_digest
from p2pdp.files.reading import read_text
from p2pdp.files.schema import (
    MECHANISMS,
    SAMPLERS,
    USERS,
    build_part,
    protocol_name,
    read_section,
)
from p2pdp.transports.registry import kind_of_address

_TOKEN_START: Final = "p2pdp1:"
_LEDGER: Final = "~/.local/state/p2pdp/budget"


@dataclass(frozen=True, slots=True)
class Accept:
    """The owner's demands on a run; None where there is none."""

    protocols: tuple[str, ...] | None = None
    mechanisms: tuple[str, ...] | None = None  # None: any that adds noise
    sigma_min: float | None = None
    sampler: str | None = None
    clip: tuple[float, float] | None = None
    hops: int | None = None
    laps: int | None = None
    tokens: int | None = None
    rounds: int | None = None
    min_live: int | None = None
    epsilon: float | None = None
    epsilon_max: float | None = None
    observer: str = Observer.NETWORK
    unit: Unit = Unit.USER
    delta: float | None = None
    peers: frozenset[bytes] | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that the owner's data set may lose in all runs."""

    epsilon: float
    delta: float
    observer: str
    ledger: Path
    unit: Unit = Unit.USER


@dataclass(frozen=True)
class NodeConfig:
    """The configuration of a node; `given` holds the keys of `[data]` that the file itself has."""

    path: Path
    identity: Identity
    token: JoinToken = field(repr=False)
    listen: Address | None  # None where nodes meet at a broker
    address: str | None
    data: DataPart
    given: frozenset[str]
    accept: Accept
    budget: Budget | None
    transport: TransportPart = field(default_factory=TransportPart)
    token_file: Path | None = None  # None where the configuration holds the token itself


def listen_address(value: Any) -> Address:
    """Address, `HOST:PORT`."""
    try:
        return split_address(text(value))
    except AddressError as error:
        raise Unfit(f"{error}.") from None


def told_address(value: Any) -> str:
    """Address that others can dial, `HOST:PORT`."""
    host, port = listen_address(value)
    if port == 0 or is_wildcard(host):
        raise Unfit("must be an address that others can reach, with the port they find there.")
    return str(value)


def code_digest(value: Any) -> str:
    """Digest, `"sha256:"` and 64 hexadecimal digits."""
    if not is_digest(text(value)):
        raise Unfit('must be "sha256:" and 64 hexadecimal digits in small letters.')
    return str(value)


_OBSERVER: Final = one_of(Observer.NODE, Observer.COALITION, Observer.NETWORK)
_DELTA_MAX: Final = 1e-3  # an epsilon_max at a larger delta would be no limit
NODE_SECTIONS: Final[dict[str, dict[str, Reader]]] = {
    "node": {"identity": text, "token": text, "listen": listen_address, "address": told_address},
    "accept": {
        "protocols": Distinct(protocol_name),
        "mechanisms": Distinct(one_of(*MECHANISMS)),
        "sigma_min": POSITIVE,
        "sampler": one_of(*SAMPLERS),
        "clip": bounds,
        "hops": HOPS,
        "laps": LAPS,
        "tokens": TOKENS,
        "rounds": ROUNDS,
        "min_live": USERS,
        "epsilon": POSITIVE,
        "epsilon_max": POSITIVE,
        "observer": _OBSERVER,
        "unit": one_of(*Unit),
        "delta": SHARE,
        "peers": Either(text, Distinct(text)),
        "model": code_digest,
    },
    "budget": {
        "epsilon": POSITIVE,
        "delta": SHARE,
        "observer": _OBSERVER,
        "unit": one_of(*Unit),
        "ledger": text,
    },
}
NODE_NEEDED: Final = {"node": ("identity", "token"), "budget": ("epsilon",)}
_NAMES: Final = ("node", "data", "accept", "budget", "transport")


def load_node_config(path: Path) -> NodeConfig:
    try:
        return _parsed(path, read_text(path))
    except UsageError as error:
        sentence = str(error)
        raise UsageError(sentence if sentence.startswith(f"{path}:") else f"{path}: {sentence}") from None


def _parsed(path: Path, content: str) -> NodeConfig:
    try:
        document = tomllib.loads(content)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"is not TOML: {error}.") from None
    for name in document:
        if name not in _NAMES:
            raise UsageError(f"[{name}]: unknown section{suggestion(name, _NAMES)}")
    for name in ("node", "data"):
        if name not in document:
            raise UsageError(f"[{name}] is missing; a node needs it.")
    node = _section("node", document["node"])
    data = read_section("data", document["data"])
    base = path.resolve().parent
    for key in ("path", "public"):
        if key in data:
            data[key] = str(base / data[key])
    token = _token(base, node["token"])
    _check_ways(node, document, token)
    return NodeConfig(
        path=path,
        identity=read_identity(base / node["identity"]),
        token=token,
        listen=node.get("listen"),
        address=node.get("address"),
        data=build_part("data", data),
        given=frozenset(data),
        accept=_accept(base, _section("accept", document.get("accept", {}))),
        budget=_budget(base, _section("budget", document["budget"])) if "budget" in document else None,
        transport=_transport(base, document.get("transport", {})),
        token_file=None if node["token"].startswith(_TOKEN_START) else base / node["token"],
    )


def _check_ways(node: Mapping[str, Any], document: Mapping[str, Any], token: JoinToken) -> None:
    """Raise `UsageError` where what the node says of how it is reached does not fit the transport of its token."""
    kind = kind_of_address(token.address)
    kind.check_node(node)
    if "transport" in document and not kind.keys:
        raise UsageError("[transport]: configures a broker, but the join token is for another transport; leave it out.")


def _transport(base: Path, table: Any) -> TransportPart:
    values = read_section("transport", table)
    for key in ("password_file", "ca", "certificate", "key"):
        if key in values:
            values[key] = str(base / values[key])
    part: TransportPart = build_part("transport", values)
    return part


def _section(name: str, table: Any) -> dict[str, Any]:
    """Read a section as `files.schema.read_section` reads those of a spec."""
    if not isinstance(table, dict):
        raise UsageError(f"[{name}] must be a section, with its keys on lines of their own.")
    readers, values = NODE_SECTIONS[name], {}
    for key, value in table.items():
        if key not in readers:
            raise UsageError(f"[{name}] {key}: unknown key{suggestion(key, readers)}")
        try:
            values[key] = readers[key](value)
        except Unfit as unfit:
            raise UsageError(f"[{name}] {key}: {unfit}") from None
    for key in NODE_NEEDED.get(name, ()):
        if key not in values:
            raise UsageError(f"[{name}] {key}: missing; a node needs it.")
    return values


def _token(base: Path, value: str) -> JoinToken:
    try:
        token = JoinToken.from_text(value if value.startswith(_TOKEN_START) else read_text(base / value))
        kind_of_address(token.address).check_bootstrap(token.address)
    except (UsageError, AddressError) as error:
        raise UsageError(f"[node] token: {error}") from None
    return token


def _accept(base: Path, values: Mapping[str, Any]) -> Accept:
    peers = values.get("peers")
    if isinstance(peers, str):
        lines = (line.split() for line in read_text(base / peers).splitlines())
        peers = [words[0] for words in lines if words and not words[0].startswith("#")]
    known = None if peers is None else frozenset(map(_public, peers))
    if "observer" in values and "epsilon_max" not in values:
        raise UsageError("[accept] observer: names the observer of epsilon_max, which is missing; add epsilon_max.")
    if "unit" in values and "epsilon_max" not in values:
        raise UsageError("[accept] unit: names the unit of epsilon_max, which is missing; add epsilon_max.")
    limited = {"delta": _DELTA_MAX} if "epsilon_max" in values else {}
    return Accept(**(limited | dict(values) | {"peers": known}))


def _public(name: str) -> bytes:
    try:
        key = bytes.fromhex(name)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise UsageError("[accept] peers: each must be an identity as identity.pub holds it, 64 hexadecimal digits.")
    return key


def _budget(base: Path, values: Mapping[str, Any]) -> Budget:
    try:
        ledger = base / Path(values.get("ledger", _LEDGER)).expanduser()
    except RuntimeError:
        raise UsageError("[budget] ledger: there is no home folder to keep it in; name a file.") from None
    observer, unit = values.get("observer", Observer.NETWORK), values.get("unit", Unit.USER)
    return Budget(values["epsilon"], values.get("delta", 1e-6), observer, ledger, unit)
