"""Watching a run, or a node: each event goes to the log and into the status that HTTP shows, and renews the index.

Status and metrics are a fold over the events of the log, so that neither can hold what may be in no log. HTTP has a
thread of its own, and so has the index: neither readers nor databases delay a run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from p2pdp.core.addresses import join_address, split_option
from p2pdp.core.errors import UsageError, VerificationFailed
from p2pdp.core.happenings import Happening, Notify, faults_to_tell, happening
from p2pdp.core.ids import Peer, is_user
from p2pdp.files.guide import page, titles
from p2pdp.files.reading import in_folder, read_bytes
from p2pdp.node.clock import Clock
from p2pdp.node.disk import durable_token
from p2pdp.node.process import resident_bytes, working
from p2pdp.runs.indexing import REFRESH_S, SQLITE, Refresher, opened_index
from p2pdp.transports.tcp.kind import listen_at

if TYPE_CHECKING:
    from p2pdp.index.store import Index
    from p2pdp.web.guard import Guard
    from p2pdp.web.page import Known, Subject
    from p2pdp.web.status import Status


@dataclass(frozen=True)
class HttpOptions:
    """The options of the HTTP server on the command line. `stays`: it goes on after the run is over."""

    listen: str
    version: str
    token_file: Path | None = None
    is_open: bool = False
    certificate: Path | None = None
    key: Path | None = None
    names: tuple[str, ...] = ()
    stays: bool = False
    auditor_token_file: Path | None = None


@dataclass(frozen=True)
class Watching:
    http: HttpOptions | None = None
    index: str | None = None


UNWATCHED: Final = Watching()


class Watch:
    """The events of one run; called from one thread, while any thread may read `status`."""

    def __init__(
        self, status: Status, notify: Notify, clock: Clock, nudge: Callable[[], None], known: Known | None
    ) -> None:
        """`known` is there if somebody can look at a page."""
        self.status = status
        self.known = known
        self.readers: Callable[[], None] = lambda: None  # tells those who look on that there may be something new
        self._notify = notify
        self._clock = clock
        self._nudge = nudge
        self._told_faults: dict[str, int] = {}

    def notify(self, told: Happening) -> None:
        self.status = self.status.after(told, self._clock.now_s())
        self._notify(told)
        self._nudge()
        self.readers()

    def about(self, **known: Any) -> None:
        """Take over what is known of the subject of the page by now; may be called from any thread."""
        if self.known is not None:
            self.known.take(**known)
            self.readers()

    def ready(self, count: int, going: bool, awaited: tuple[int, ...] = ()) -> None:
        self.status = self.status.counted(count, self.status.faults, awaited)
        if going and self.status.state == "gathering":
            self.notify(happening("begun"))
        self._nudge()
        self.readers()

    def beat(self, faults: Mapping[str, int], away: Collection[Peer] | None = None) -> None:
        """Take over what is counted, and tell who has fallen silent and who is back; None where nobody is watched."""
        self.status = self.status.counted(self.status.ready, faults, self.status.awaited)
        for told in faults_to_tell(faults, self._told_faults):
            self.notify(told)
        if away is None:
            return
        before, now = set(self.status.silent_s), set(filter(is_user, away))
        for event, users in (("silent", now - before), ("back", before - now)):
            for user in sorted(users):
                self.notify(happening(event, user=user))


@dataclass(frozen=True)
class _Shown:
    """The content that HTTP shows (`web.responder.Content`)."""

    watch: Watch
    folder: Path | None
    index: Index | None
    clock: Clock

    def status(self) -> Status:
        return self.watch.status

    def subject(self) -> Subject:
        assert self.watch.known is not None
        return self.watch.known.subject

    def now_s(self) -> float:
        return self.clock.now_s()

    def resident_bytes(self) -> int | None:
        return resident_bytes()

    def file(self, name: str) -> bytes | None:
        try:
            return None if self.folder is None else read_bytes(in_folder(self.folder, name))
        except (UsageError, VerificationFailed):
            return None

    def runs(self, limit: int, offset: int) -> dict[str, Any]:
        from p2pdp.index.store import IndexBroken
        from p2pdp.web.responder import NoIndex

        if self.index is None:
            raise NoIndex("this server was started without an index")
        try:
            listed = self.index.runs(limit, offset)
        except IndexBroken:
            raise NoIndex("the index does not answer") from None
        for run in listed["runs"]:
            del run["folder"]  # where this machine keeps its files is nobody else's business
        return listed

    def guide_titles(self) -> dict[str, str]:
        return titles()

    def guide_text(self, topic: str) -> str:
        return page(topic).text


@contextmanager
def watched(
    options: Watching, status: Callable[[float], Status], folder: Path | None, notify: Notify
) -> Iterator[Watch]:
    """Watch a run while it lasts; `status` makes the first one, given the time. Wrong options are refused at once."""
    clock = Clock()
    with ExitStack() as stack:
        serve = None if options.http is None else _server(options.http, stack, notify)
        index = None if folder is None else _index(options, folder)
        nudge: Callable[[], None] = lambda: None  # noqa: E731
        if index is not None and folder is not None:
            nudge = stack.enter_context(working(Refresher(index, folder, notify).refresh, REFRESH_S))
        watch = Watch(status(clock.now_s()), notify, clock, nudge, None if serve is None else _nothing_known())
        if serve is not None:
            serve(_Shown(watch, folder, index, Clock()))
        yield watch


def _nothing_known() -> Known:
    from p2pdp.web.page import Known

    return Known()


def _index(options: Watching, folder: Path) -> Index | None:
    """Open the index that was asked for; beside HTTP one in the folder, if what it needs is installed."""
    if options.index is not None:
        return opened_index(options.index, folder)
    if options.http is None:
        return None
    try:
        return opened_index(SQLITE, folder)
    except UsageError:  # nobody asked for it, and whoever asks the server for runs is told
        return None


def _server(options: HttpOptions, stack: ExitStack, notify: Notify) -> Callable[[_Shown], None]:
    """Take the socket and return what begins to answer on it."""
    from p2pdp.web.responder import Responder
    from p2pdp.web.server import server_tls, serving

    if (options.certificate is None) != (options.key is None):
        raise UsageError("--http-cert, --http-key: TLS needs both of them")
    tls = None if options.certificate is None else server_tls(str(options.certificate), str(options.key))
    at = split_option("--http", options.listen)
    bound = listen_at(at, "--http")
    stack.callback(bound.close)
    inside = ip_address(bound.getsockname()[0].partition("%")[0]).is_loopback
    if not inside and options.token_file is None and not options.is_open:
        raise UsageError(
            f"--http {options.listen}: is reachable from other machines; add --http-token-file FILE (created if "
            "missing), or --http-open to serve without authentication"
        )
    guard = replace(_guard(options, notify), inside=inside)
    url = f"{'http' if tls is None else 'https'}://{join_address(at.host, bound.getsockname()[1])}/"
    if not inside and tls is None:
        bare = guard.token is None and guard.auditor_token is None
        what = "what is served" if bare else "what is served, and the tokens"
        notify(happening("http_clear", listen=options.listen, what=what))

    def serve(shown: _Shown) -> None:
        shown.watch.readers = stack.enter_context(serving(Responder(shown, guard, options.version), bound, tls))
        notify(happening("http", url=url))

    return serve


def _guard(options: HttpOptions, notify: Notify) -> Guard:
    from p2pdp.web.guard import Guard, check_token

    def token(file: Path | None, option: str, event: str) -> str | None:
        if file is None:
            return None
        text, is_new = durable_token(file)
        if is_new:
            notify(happening(event, file=str(file)))
        return check_token(text, str(file), option)

    read = token(options.token_file, "--http-token-file", "http_token")
    auditors = token(options.auditor_token_file, "--http-auditor-token-file", "http_auditor_token")
    if auditors is not None and auditors == read:
        raise UsageError("--http-auditor-token-file: must not hold the read token, which participants have")
    return Guard(options.names, read, auditors)
