from __future__ import annotations

import http.server
import threading

import pytest

from p2pdp.core.errors import NotReady, UsageError
from p2pdp.web.asking import ask


def test_a_token_goes_nowhere_else() -> None:
    asked: list[str] = []

    class Elsewhere(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(302)
            self.send_header("Location", "/stolen")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        assert ask(f"http://127.0.0.1:{server.server_address[1]}", "/api", "secret", None) == (302, {})
        server.shutdown()
        thread.join()
    assert asked == ["/api"]


@pytest.mark.parametrize("url", ["http://", "http://a:b/", "https://[x", "http://127.0.0.1:99999/"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(UsageError, match="address of a server"):
        ask(url, "/api", None, None)


def test_nobody_answers() -> None:
    with pytest.raises(NotReady, match="does not answer"):
        ask("http://127.0.0.1:1", "/api", None, None)
