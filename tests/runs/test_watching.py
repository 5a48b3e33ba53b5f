from __future__ import annotations

import json
import stat
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from p2pdp.core.errors import NotReady, UsageError
from p2pdp.core.happenings import Happening, happening
from p2pdp.runs.watching import UNWATCHED, HttpOptions, Watching, watched
from p2pdp.web.status import Status
from tests.support.certificates import write_pair

HTTP = HttpOptions("127.0.0.1:0", "1.2")


def first(now_s: float) -> Status:
    return Status(role="bootstrap", began_s=now_s, run_id="ab", nodes=3)


def asked(url: str, token: str | None = None) -> Any:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - our own server's
    with urllib.request.urlopen(request, timeout=240) as answer:  # noqa: S310 - same
        return json.load(answer)


def test_what_is_told_goes_to_the_log_and_into_the_status() -> None:
    told: list[Happening] = []
    with watched(UNWATCHED, first, None, told.append) as watch:
        watch.notify(happening("listening", how="h", tokens=3, address="a", folder="f", identity="k"))
        watch.notify(happening("roster", n=3))
        watch.ready(2, False)
        assert (watch.status.state, watch.status.ready) == ("gathering", 2)
        watch.ready(3, True)
        watch.ready(3, True)
        watch.beat({"garbage": 1})
        watch.beat({"garbage": 2})
    assert [each.event for each in told] == ["listening", "roster", "begun", "fault"]
    assert (watch.status.state, watch.status.ready, watch.status.faults) == ("running", 3, {"garbage": 2})


def test_who_falls_silent_and_who_is_back_is_told_once() -> None:
    told: list[Happening] = []
    with watched(UNWATCHED, first, None, told.append) as watch:
        for away in (None, (), (2, 1), (1, 2), (2,), (2, -2), None):
            watch.beat({}, away)
        assert list(watch.status.silent_s) == [2]
    assert [(each.event, each.facts["user"]) for each in told] == [("silent", 1), ("silent", 2), ("back", 1)]


def test_http_shows_the_status_the_files_and_the_index_and_then_is_gone(tmp_path: Path) -> None:
    told: list[Happening] = []
    (tmp_path / "spec.toml").write_text("")
    options = replace(HTTP, auditor_token_file=tmp_path / "auditor")
    with watched(Watching(options), first, tmp_path, told.append) as watch:
        url = str(told[1].facts["url"])
        with pytest.raises(urllib.error.HTTPError, match="503") as early:
            asked(f"{url}readyz")
        early.value.close()
        watch.notify(happening("listening", how="h", tokens=3, address="a", folder="f", identity="k"))
        assert asked(f"{url}readyz") == {"ready": True, "state": "enrolling"}
        with pytest.raises(urllib.error.HTTPError, match="404") as absent:
            asked(f"{url}api/v1/result")
        absent.value.close()
        (tmp_path / "participants.json").write_text("{}")
        assert asked(f"{url}api/v1/result") == {}
        token = (tmp_path / "auditor").read_text().strip()
        assert asked(f"{url}api/v1/runs", token) == {"runs": [], "total": 0}
        (tmp_path / "result.json").write_text('{"truth": 1}')
        assert asked(f"{url}api/v1/auditor/result", token) == {"truth": 1}
        for path in ("runs", "audit", "auditor/result"):
            with pytest.raises(urllib.error.HTTPError, match="401") as refused:
                asked(f"{url}api/v1/{path}")
            refused.value.close()
    with pytest.raises(urllib.error.URLError):
        asked(f"{url}healthz")


def test_a_token_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "token"
    options = Watching(replace(HTTP, token_file=file))
    told: list[Happening] = []
    for _ in range(2):
        with watched(options, first, None, told.append):
            url = str(told[-1].facts["url"])
            token = file.read_text().strip()
            assert asked(f"{url}api/v1/run", token)["run_id"] == "ab"
            with pytest.raises(urllib.error.HTTPError, match="401") as refused:
                asked(f"{url}api/v1/run")
            refused.value.close()
    assert [each.event for each in told] == ["http_token", "http", "http"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not any(token in each.text for each in told)


def test_others_may_reach_it_only_where_its_owner_said_how(tmp_path: Path) -> None:
    told: list[Happening] = []
    public = replace(HTTP, listen="0.0.0.0:0")
    with (
        pytest.raises(UsageError, match=r"--http-token-file FILE.*--http-open"),
        watched(Watching(public), first, None, told.append),
    ):
        pass
    with watched(Watching(replace(public, is_open=True)), first, None, told.append):
        pass
    with watched(Watching(replace(public, token_file=tmp_path / "token")), first, None, told.append):
        pass
    assert [each.event for each in told] == ["http_clear", "http", "http_token", "http_clear", "http"]
    certificate, key = write_pair(tmp_path, "a")
    told.clear()
    secret = replace(public, is_open=True, certificate=certificate, key=key)
    with watched(Watching(secret), first, None, told.append):
        assert [each.event for each in told] == ["http"]
        assert str(told[0].facts["url"]).startswith("https://")


def short(place: Path) -> HttpOptions:
    (place / "short").write_text("x\n")
    return replace(HTTP, token_file=place / "short")


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda _place: replace(HTTP, listen="here"), "--http here: must read"),
        (lambda place: replace(HTTP, certificate=place / "a"), "needs both"),
        (lambda place: replace(HTTP, key=place / "a"), "needs both"),
        (lambda place: replace(HTTP, key=place / "a", certificate=place / "b"), "No such file"),
        (lambda place: replace(HTTP, token_file=place), "Is a directory"),
        (short, "16 to 512"),
        (
            lambda place: replace(short(place), token_file=None, auditor_token_file=place / "short"),
            "auditor-token-file",
        ),
        (
            lambda place: replace(HTTP, token_file=place / "t", auditor_token_file=place / "t"),
            "--http-auditor-token-file",
        ),
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, made: Callable[[Path], HttpOptions], says: str) -> None:
    with pytest.raises(UsageError, match=says), watched(Watching(made(tmp_path)), first, tmp_path, print):
        pass


def test_a_port_in_use_is_not_ready() -> None:
    told: list[Happening] = []
    with watched(Watching(HTTP), first, None, told.append):
        taken = str(told[0].facts["url"]).split("/")[2]
        with (
            pytest.raises(NotReady, match=r"--http .*:\d+"),
            watched(Watching(replace(HTTP, listen=taken)), first, None, told.append),
        ):
            pass


def test_a_wrong_index_is_refused_and_a_broken_one_is_not(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--index"), watched(Watching(None, "x://y"), first, tmp_path, print):
        pass
    told: list[Happening] = []
    absent = f"sqlite:///{tmp_path / 'absent' / 'x'}"
    (tmp_path / "spec.toml").write_text("")
    with watched(Watching(None, absent), first, tmp_path, told.append) as watch:
        watch.notify(happening("roster", n=3))
    assert sorted({each.event for each in told}) == ["index_broken", "roster"]
