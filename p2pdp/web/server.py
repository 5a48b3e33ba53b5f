"""The HTTP server: aiohttp's, in a thread with a loop of its own, so that no reader ever delays the protocol.

Guarantee: a connection carries one request and lives `CONNECTION_S` at most, whoever is slow, there are no more than
`CONNECTIONS_MAX` of them, and none may send more than a question has. All this counts from the moment a connection is
taken, for a TLS handshake may never end. What goes wrong within is answered with 500 and told by its kind only. Leaving
the context ends the thread and every connection.

TLS of the HTTP server, from the files that its owner names.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from p2pdp.core.errors import UsageError
from p2pdp.web.answers import Answer, problem
from p2pdp.web.responder import Request, Responder

CONNECTIONS_MAX: Final = 64
CONNECTION_S: Final = 30.0
HEADER_BYTES_MAX: Final = 8192
REQUEST_BYTES_MAX: Final = 32_768
_HANDSHAKE_S: Final = 10.0
_STOP_S: Final = 1.0
_PAUSE_S: Final = 1.0
_TURNS: Final = 3

_quiet: Final = logging.getLogger("p2pdp.web")
_quiet.setLevel(logging.CRITICAL + 1)  # the library would log requests, and quote what was wrong with them


class _Handler(RequestHandler):
    """One connection."""

    __slots__ = ("_got_bytes", "lost")

    def __init__(self, server: _Server, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(
            server, loop=loop, access_log=_quiet, logger=_quiet, max_line_size=HEADER_BYTES_MAX,
            max_field_size=HEADER_BYTES_MAX, lingering_time=0.0, tcp_keepalive=False,
        )  # fmt: skip
        self._got_bytes = 0
        self.lost = asyncio.Event()

    def connection_lost(self, exc: BaseException | None) -> None:
        self.lost.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._got_bytes += len(data)
        if self._got_bytes > REQUEST_BYTES_MAX and self.transport is not None:
            self.transport.abort()
            return
        super().data_received(data)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what is no HTTP; the library's own text would repeat the request."""
        found = HTTPStatus(status)
        wrong = found is HTTPStatus.INTERNAL_SERVER_ERROR
        return _response(problem(found, "internal error" if wrong else "malformed request"))


class _Server(web.Server):
    def __call__(self) -> _Handler:
        return _Handler(self, asyncio.get_running_loop())


class _Door:
    """Takes connections and holds each in a task; `create_server` would tell of them only after a TLS handshake."""

    def __init__(self, server: _Server, bound: socket.socket, tls: ssl.SSLContext | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._server = server
        self._bound = bound
        self._tls = tls
        self._pause: asyncio.TimerHandle | None = None
        self._held: set[asyncio.Task[None]] = set()
        bound.setblocking(False)
        self._open()

    def _open(self) -> None:
        self._pause = None
        self._loop.add_reader(self._bound, self._take)

    def shut(self) -> None:
        """Stop taking connections."""
        self._loop.remove_reader(self._bound)
        if self._pause is not None:
            self._pause.cancel()

    async def clear(self) -> None:
        """End the connections that are left."""
        for task in self._held:
            task.cancel()
        await asyncio.gather(*self._held, return_exceptions=True)

    def _take(self) -> None:
        try:
            client, _ = self._bound.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError:  # no more files may be open; asking again at once would only burn time
            self._loop.remove_reader(self._bound)
            self._pause = self._loop.call_later(_PAUSE_S, self._open)
            return
        if len(self._held) >= CONNECTIONS_MAX:
            client.close()
            return
        client.setblocking(False)
        task = self._loop.create_task(self._hold(client))
        self._held.add(task)
        task.add_done_callback(self._held.discard)

    async def _hold(self, client: socket.socket) -> None:
        handshake_s = None if self._tls is None else _HANDSHAKE_S
        with suppress(OSError):  # also when time is up, and what a handshake can raise
            async with asyncio.timeout(CONNECTION_S):
                transport, handler = await self._loop.connect_accepted_socket(
                    self._server, client, ssl=self._tls, ssl_handshake_timeout=handshake_s
                )
                try:
                    await handler.lost.wait()
                finally:
                    transport.abort()


def _response(answer: Answer) -> web.Response:
    response = web.Response(status=answer.status, body=answer.body)
    for name, value in answer.headers:
        if name == "Content-Type":
            response.headers[name] = value
        else:
            response.headers.add(name, value)
    response.headers["Server"] = "p2pdp"
    response.force_close()
    return response


async def _answered(responder: Responder, asked: web.BaseRequest) -> web.StreamResponse:
    request = Request(asked.method, asked.raw_path, lambda name: asked.headers.getall(name, []))
    if responder.takes_time(request):
        return _response(await asyncio.to_thread(responder.answer, request))
    return _response(responder.answer(request))


@contextmanager
def serving(responder: Responder, bound: socket.socket, tls: ssl.SSLContext | None) -> Iterator[None]:
    """Answer on a socket that listens, until the context is left; the socket is closed then."""
    loop = asyncio.new_event_loop()
    ready, stop = threading.Event(), asyncio.Event()

    async def serve() -> None:
        server = _Server(lambda asked: _answered(responder, asked))
        door = _Door(server, bound, tls)
        ready.set()
        await stop.wait()
        door.shut()
        bound.close()
        for _ in range(_TURNS):  # until a connection that was just taken has a handler or a handshake, which can end
            await asyncio.sleep(0)
        server.pre_shutdown()
        await server.shutdown(_STOP_S)
        await door.clear()
        await asyncio.sleep(0)  # sockets are closed in the next turn of the loop

    def run() -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(serve())
        finally:
            ready.set()
            loop.close()

    thread = threading.Thread(target=run, name="http", daemon=True)
    thread.start()
    ready.wait()
    try:
        yield
    finally:
        if thread.is_alive():
            loop.call_soon_threadsafe(stop.set)
        thread.join()


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
