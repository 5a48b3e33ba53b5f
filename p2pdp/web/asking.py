"""Asks a server of ours for a document. Its token goes to that server only, since redirects are not followed."""

from __future__ import annotations

import http.client
import json
import ssl
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from p2pdp.core.errors import NotReady, UsageError

_ANSWER_S: Final = 20.0
_ANSWER_BYTES_MAX: Final = 1 << 20


def ask(url: str, path: str, token: str | None, ca: Path | None) -> tuple[int, dict[str, Any]]:
    """Return the status and the document that a server answers; a redirect is an answer like any other."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        if not host:
            raise ValueError
    except ValueError:
        raise UsageError(f"{url}: is no address of a server, such as http://boot.example.org:8080") from None
    connection = http.client.HTTPConnection(host, port, timeout=_ANSWER_S)
    try:
        if parts.scheme == "https":
            context = ssl.create_default_context(cafile=None if ca is None else str(ca))
            connection = http.client.HTTPSConnection(host, port, timeout=_ANSWER_S, context=context)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        connection.request("GET", parts.path.rstrip("/") + path, headers=headers)
        answer = connection.getresponse()
        document = json.loads(answer.read(_ANSWER_BYTES_MAX))
    except (OSError, http.client.HTTPException) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise NotReady(f"{url}: does not answer: {why}") from None
    except ValueError:
        raise NotReady(f"{url}: does not answer as p2pdp does") from None
    finally:
        connection.close()
    return answer.status, document if isinstance(document, dict) else {}
