"""Settings of a Mosquitto that is safe to use: who may come in, what each may read, and how much it holds.

Guarantee: nobody comes in without a password or a certificate, or into another's session. The access list lets each
user read its own topic and write to those of all runs, and nothing else; who wrote a frame shows when its box is
opened. Limits are set knowingly: a station that is away for long is sent what came meanwhile, and one that never
comes back costs the broker no more than `QUEUE_BYTES_MAX`. Nothing is retained: the access list does not forbid it,
our stations do not do it, and nobody reads it.

Passwords are kept as Mosquitto's own tool keeps them: `$7$` rounds `$` salt `$` PBKDF2-HMAC-SHA512, in base64.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from hashlib import pbkdf2_hmac
from typing import Final

from p2pdp.crypto.entropy import random_bytes

ROUNDS: Final = 1000  # of what protects passwords that have 192 bits of entropy anyway
SALT_BYTES: Final = 12
HASH_BYTES: Final = 64
IN_FLIGHT_MAX: Final = 200
QUEUE_MESSAGES_MAX: Final = 100_000  # for one station that is away
QUEUE_BYTES_MAX: Final = 256 * 1024 * 1024
PACKET_BYTES_MAX: Final = 16 * 1024 * 1024 + 4096  # the largest frame, and what is around it
AUTOSAVE_S: Final = 10

ACCESS_LIST: Final = """# Each user reads its own topic of every run, and writes to those of others.
pattern read p2pdp/+/%u
pattern write p2pdp/+/+
"""


def mosquitto_settings(
    listeners: str,
    *,
    password_file: str | None,
    access_file: str,
    persistence: str | None = None,
    user: str | None = None,
) -> str:
    """`listeners` are Mosquitto's own lines for where it listens, and with which certificate; one listener alone."""
    lines = [
        "# A session is its user's: nobody takes over another's by coming under its name.",
        "use_username_as_clientid true",
        "per_listener_settings false",
        "allow_anonymous false",
        None if password_file is None else f"password_file {password_file}",
        f"acl_file {access_file}",
        "# A frame leaves at once, and many may be under way.",
        "set_tcp_nodelay true",
        f"max_inflight_messages {IN_FLIGHT_MAX}",
        "# What waits for a station that is away: frames and bytes.",
        f"max_queued_messages {QUEUE_MESSAGES_MAX}",
        f"max_queued_bytes {QUEUE_BYTES_MAX}",
        f"max_packet_size {PACKET_BYTES_MAX}",
        "retain_available false",
        "# No line for a connection, a subscription or a message: such lines together are the token's route.",
        "log_type error",
        "log_type warning",
        "connection_messages false",
        *_persistence(persistence),
        None if user is None else f"user {user}",
    ]
    return "\n".join([listeners.rstrip("\n"), *filter(None, lines)]) + "\n"


def _persistence(folder: str | None) -> list[str]:
    if folder is None:
        return ["persistence false"]
    return [
        "# Sessions and what waits in them outlast a restart.",
        "persistence true",
        f"persistence_location {folder.rstrip('/')}/",
        f"autosave_interval {AUTOSAVE_S}",
        "persistent_client_expiration 14d",
    ]


def password_lines(passwords: Mapping[str, str]) -> str:
    return "".join(f"{user}:{password_hash(password)}\n" for user, password in passwords.items())


def password_hash(password: str) -> str:
    salt = random_bytes(SALT_BYTES)
    hashed = pbkdf2_hmac("sha512", password.encode(), salt, ROUNDS, HASH_BYTES)
    return f"$7${ROUNDS}${b64encode(salt).decode()}${b64encode(hashed).decode()}"


def fresh_password() -> str:
    return random_bytes(24).hex()
