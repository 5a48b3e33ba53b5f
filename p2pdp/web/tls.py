"""TLS of the HTTP server, from the files that its owner names."""

from __future__ import annotations

import ssl

from p2pdp.core.errors import UsageError


def server_tls(certificate: str, key: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key, password="")  # nobody is there to be asked for another
    except ssl.SSLError as error:
        why = "they do not belong together" if error.reason == "KEY_VALUES_MISMATCH" else "not PEM, or encrypted"
        raise UsageError(f"--http-cert {certificate}, --http-key {key}: cannot be used, {why}") from None
    except OSError as error:
        raise UsageError(f"--http-cert {certificate}, --http-key {key}: {error.strerror}") from None
    return context
