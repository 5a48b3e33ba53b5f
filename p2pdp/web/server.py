"""The HTTP server: aiohttp's, in a thread with a loop of its own, so that no reader ever delays the protocol.

Guarantee: a connection carries one request and lives `CONNECTION_S` at most, whoever is slow, there are no more than
`CONNECTIONS_MAX` of them, and none may send more than a question has. All this counts from the moment a connection is
taken, for a TLS handshake may never end. What goes wrong within is answered with 500 and told by its kind only. Leaving
the context ends the thread and every connection.

Probes are answered whatever else goes on: other requests have `ANSWERS_MAX` places and are refused beyond them, and a
connection that is one too many displaces one that has asked nothing, or whose answer is not being read, of the address
that has most of them. Who does not read an answer for `SLOW_S` loses the connection.

A page is fed by a stream of events, which lives longer, `FEED_S` at most, and has one of `FEEDS_MAX` places of its own:
so streams keep nobody else out, probes least of all. What changed is sent when the run tells that something did, in at
least `FEED_LEAST_S` of one another, and a reader who does not take it within `FEED_SLOW_S` loses its place.

TLS of the HTTP server, from the files that its owner names.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import Final, TypeVar

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from p2pdp.core.admission import Admission, counted_address
from p2pdp.core.errors import UsageError
from p2pdp.web.answers import Answer, problem
from p2pdp.web.live import event
from p2pdp.web.responder import Request, Responder

CONNECTIONS_MAX: Final = 64
ANSWERS_MAX: Final = 48
CONNECTION_S: Final = 30.0
SLOW_S: Final = 5.0
SENT_BYTES_MAX: Final = 65_536  # what the system keeps of an answer: so little that one sees whether it is read
HEADER_BYTES_MAX: Final = 8192
REQUEST_BYTES_MAX: Final = 32_768
_HANDSHAKE_S: Final = 10.0
FEEDS_MAX: Final = 32
FEED_S: Final = 1800.0
FEED_LEAST_S: Final = 0.2
FEED_SLOW_S: Final = 10.0
FEED_BEAT_S: Final = 15.0
_STOP_S: Final = 1.0
_PAUSE_S: Final = 1.0
_TURNS: Final = 3

_quiet: Final = logging.getLogger("p2pdp.web")
_quiet.setLevel(logging.CRITICAL + 1)  # the library would log requests, and quote what was wrong with them


class _Handler(RequestHandler):
    """One connection."""

    __slots__ = ("_got_bytes", "_looked", "_unread_bytes", "answered", "asked", "limit", "lost")

    def __init__(self, server: _Server, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(
            server, loop=loop, access_log=_quiet, logger=_quiet, max_line_size=HEADER_BYTES_MAX,
            max_field_size=HEADER_BYTES_MAX, lingering_time=0.0, tcp_keepalive=False,
        )  # fmt: skip
        self._got_bytes = 0
        self.lost = asyncio.Event()
        self.limit: asyncio.Timeout | None = None
        self.asked = False  # whether a whole request came
        self.answered = False  # whether all that is left to do is up to the reader
        self._unread_bytes = 0
        self._looked: asyncio.TimerHandle | None = None

    def lasts(self, seconds: float) -> None:
        """Let the connection last so long from now on."""
        if self.limit is not None:
            self.limit.reschedule(asyncio.get_running_loop().time() + seconds)

    def is_read(self) -> None:
        """Take note that an answer is on its way; abort once nothing of it was read for `SLOW_S`."""
        transport, before = self.transport, self._unread_bytes
        self._unread_bytes = 0 if transport is None else transport.get_write_buffer_size()
        if transport is None or (self._looked is not None and 0 < before <= self._unread_bytes):
            self.abort()
        else:
            self._looked = asyncio.get_running_loop().call_later(SLOW_S, self.is_read)

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        self.lost.set()
        if self._looked is not None:
            self._looked.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._got_bytes += len(data)
        if self._got_bytes > REQUEST_BYTES_MAX:
            self.abort()
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

    def __init__(self, server: _Server, bound: socket.socket, tls: ssl.SSLContext | None, feeds: _Feeds) -> None:
        self._feeds = feeds
        self._loop = asyncio.get_running_loop()
        self._server = server
        self._bound = bound
        self._tls = tls
        self._pause: asyncio.TimerHandle | None = None
        self._held: Admission[asyncio.Task[None]] = Admission()
        self._handlers: dict[asyncio.Task[None], _Handler] = {}
        self._ended: set[asyncio.Task[None]] = set()
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
        await asyncio.gather(*self._held, *self._ended, return_exceptions=True)

    def _take(self) -> None:
        try:
            client, name = self._bound.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError:  # no more files may be open; asking again at once would only burn time
            self._loop.remove_reader(self._bound)
            self._pause = self._loop.call_later(_PAUSE_S, self._open)
            return
        if len(self._held) - self._feeds.count >= CONNECTIONS_MAX and not self._made_room():
            client.close()
            return
        client.setblocking(False)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SENT_BYTES_MAX)
        task = self._loop.create_task(self._hold(client))
        self._held.add(task, counted_address(name))
        task.add_done_callback(self._let_go)

    def _let_go(self, task: asyncio.Task[None]) -> None:
        self._held.discard(task)
        self._handlers.pop(task, None)

    def _made_room(self) -> bool:
        """End a connection that has not asked anything, else one whose answer is not read: they keep nobody out."""
        task = self._held.first_to_go(self._is_silent) or self._held.first_to_go(self._is_slow)
        if task is None:
            return False
        self._let_go(task)
        self._ended.add(task)
        task.add_done_callback(self._ended.discard)
        task.cancel()
        return True

    def _is_silent(self, task: asyncio.Task[None]) -> bool:
        handler = self._handlers.get(task)
        return handler is None or not handler.asked

    def _is_slow(self, task: asyncio.Task[None]) -> bool:
        return self._handlers[task].answered

    async def _hold(self, client: socket.socket) -> None:
        handshake_s = None if self._tls is None else _HANDSHAKE_S
        with suppress(OSError):  # also when time is up, and what a handshake can raise
            async with asyncio.timeout(CONNECTION_S) as limit:
                transport, handler = await self._loop.connect_accepted_socket(
                    self._server, client, ssl=self._tls, ssl_handshake_timeout=handshake_s
                )
                handler.limit = limit
                task = asyncio.current_task()
                if task is not None and task in self._held:
                    self._handlers[task] = handler
                try:
                    await handler.lost.wait()
                finally:
                    transport.abort()


class _Feeds:
    """The streams of events, and what wakes them."""

    def __init__(self) -> None:
        self.count = 0
        self._ending = False
        self._changed = asyncio.Event()

    def tell(self) -> None:
        """Have all streams look whether their parts changed."""
        self._changed.set()
        self._changed = asyncio.Event()

    def end(self) -> None:
        self._ending = True
        self.tell()

    async def carry(self, asked: web.BaseRequest, answer: Answer) -> web.StreamResponse:
        """Send parts as they change, until the time of a stream is over, its reader is gone or slow, or all ends."""
        handler = asked.protocol
        if self.count >= FEEDS_MAX or not isinstance(handler, _Handler):
            return _response(problem(HTTPStatus.SERVICE_UNAVAILABLE, "all places for streams are taken"))
        self.count += 1
        try:
            handler.lasts(FEED_S + FEED_SLOW_S)
            response = _with_headers(web.StreamResponse(status=answer.status), answer)
            await response.prepare(asked)
            await self._send(response, answer, handler.lost)
        except (TimeoutError, ConnectionError):
            handler.abort()
            raise
        finally:
            self.count -= 1
        return response

    async def _send(self, response: web.StreamResponse, answer: Answer, lost: asyncio.Event) -> None:
        """Send; a beat goes out at times that depend on nothing else, so that it tells nothing."""
        assert answer.feed is not None
        now = asyncio.get_running_loop().time
        until_s, beat_s, sent = now() + FEED_S, now() + FEED_BEAT_S, dict[str, str]()
        while not lost.is_set():
            ending, changed = self._ending, self._changed
            parts = await asyncio.to_thread(answer.feed)
            new = {name: part for name, part in parts.items() if sent.get(name) != part}
            sent.update(new)
            if new:
                await _written(response, event(new))
                await asyncio.sleep(0.0 if self._ending else FEED_LEAST_S)
            if ending or now() >= until_s:
                return
            if now() >= beat_s:
                beat_s += FEED_BEAT_S
                await _written(response, b":\n\n")
            await _first_of(changed, lost, within_s=max(0.0, min(beat_s, until_s) - now()))


async def _written(response: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(FEED_SLOW_S):
        await response.write(data)


async def _first_of(*events: asyncio.Event, within_s: float) -> None:
    waits = [asyncio.ensure_future(one.wait()) for one in events]
    try:
        await asyncio.wait(waits, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def _response(answer: Answer) -> web.Response:
    return _with_headers(web.Response(status=answer.status, body=answer.body), answer)


_Sent = TypeVar("_Sent", bound=web.StreamResponse)


def _with_headers(response: _Sent, answer: Answer) -> _Sent:
    for name, value in answer.headers:
        if name == "Content-Type":
            response.headers[name] = value
        else:
            response.headers.add(name, value)
    response.headers["Server"] = "p2pdp"
    response.force_close()
    return response


class _Answers:
    """Answers requests, and counts those that are being answered, so that some places are left for probes."""

    def __init__(self, responder: Responder, feeds: _Feeds) -> None:
        self._responder = responder
        self._feeds = feeds
        self._under_way: set[_Handler] = set()

    async def give(self, asked: web.BaseRequest) -> web.StreamResponse:
        request = Request(asked.method, asked.raw_path, lambda name: asked.headers.getall(name, []))
        handler = asked.protocol
        assert isinstance(handler, _Handler)
        handler.asked = True
        if not self._responder.is_probe(request):
            self._under_way = {one for one in self._under_way if not one.lost.is_set()}
            if len(self._under_way) >= ANSWERS_MAX:
                return _response(problem(HTTPStatus.SERVICE_UNAVAILABLE, "too many are being answered; ask again"))
            self._under_way.add(handler)
        if self._responder.takes_time(request):
            answer = await asyncio.to_thread(self._responder.answer, request)
        else:
            answer = self._responder.answer(request)
        if answer.feed and asked.method == "GET":
            self._under_way.discard(handler)  # streams have places of their own
            return await self._feeds.carry(asked, answer)
        handler.answered = True
        handler.is_read()
        return _response(answer)


@contextmanager
def serving(responder: Responder, bound: socket.socket, tls: ssl.SSLContext | None) -> Iterator[Callable[[], None]]:
    """Answer on a socket that listens, until the context is left; the socket is closed then.

    Yield what tells that there may be something new to be shown; it may be called from any thread and returns at once.
    """
    loop = asyncio.new_event_loop()
    ready, stop, feeds = threading.Event(), asyncio.Event(), _Feeds()

    def nudge() -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(feeds.tell)

    async def serve() -> None:
        server = _Server(_Answers(responder, feeds).give)
        door = _Door(server, bound, tls, feeds)
        ready.set()
        await stop.wait()
        door.shut()
        bound.close()
        feeds.end()
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
        yield nudge
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
