"""A process that computes for a node: what comes back, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue

import pytest

from p2pdp.core.errors import P2pdpError, Refused, RunFailed, VerificationFailed
from p2pdp.node.helper import Helper, Interrupted, asking_aside
from tests.support.launched import wait_for
from tests.support.sources import TOP

MODULE = "tests.support.answering"


def helper(answer_s: float = 60.0) -> Helper:
    return Helper(MODULE, "the sum", answer_s)


def is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_it_answers_again_and_again_and_is_gone_when_it_is_closed() -> None:
    with helper() as asked:
        assert asked.ask({"do": "echo", "long": "x" * 200_000})["long"] == "x" * 200_000
        process = asked.ask({"do": "process"})
        assert asked.ask({"do": "process"}) == process != os.getpid()
        assert is_there(process)
    assert not is_there(process)


@pytest.mark.parametrize(
    ("does", "error", "says"),
    [
        ("refuse", Refused, "secret"),
        ("damaged", VerificationFailed, "secret"),
        ("defect", RunFailed, "KeyError in answering.py"),
    ],
)
def test_errors_come_back_as_what_they_are_and_defects_without_their_message(
    does: str, error: type[P2pdpError], says: str
) -> None:
    with helper() as asked:
        with pytest.raises(error, match=says) as caught:
            asked.ask({"do": does, "why": "secret"})
        assert type(caught.value) is error
        assert ("secret" in str(caught.value)) == (does != "defect")
        assert asked.ask({"do": "echo"}) == {"do": "echo"}, "it can be asked again"


def test_one_that_dies_is_no_answer_and_the_next_question_starts_another() -> None:
    with helper() as asked:
        with pytest.raises(RunFailed, match=r"the sum could not be computed: .* exit code 7"):
            asked.ask({"do": "die"})
        assert asked.ask({"do": "echo"}) == {"do": "echo"}


def test_one_that_takes_too_long_is_ended() -> None:
    with helper() as asked:
        process = asked.ask({"do": "process"})
        asked._answer_s = 0.01
        with pytest.raises(Refused, match=r"within 0\.01 s"):
            asked.ask({"do": "sleep"})
        assert not is_there(process)


@contextmanager
def signalled(number: signal.Signals) -> Iterator[None]:
    """The signal comes while the main thread waits, as far as can be told from outside: when it heeds it itself."""
    usual = signal.getsignal(number)

    def send() -> None:
        wait_for(lambda: signal.getsignal(number) is not usual, "the helper is waited for")
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=send)
    thread.start()
    yield
    thread.join()
    assert signal.getsignal(number) is usual


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_node_ends_the_helper_and_the_wait(number: signal.Signals) -> None:
    with helper() as asked:
        process = asked.ask({"do": "process"})
        with signalled(number), pytest.raises(Interrupted):
            asked.ask({"do": "sleep"})
        assert not is_there(process)


def test_it_ends_with_a_node_that_is_killed_also_in_the_midst_of_an_answer() -> None:
    script = (
        f"from p2pdp.node.helper import Helper; asked = Helper({MODULE!r}, 'x'); "
        "print(asked.ask({'do': 'process'}), flush=True); asked.ask({'do': 'sleep'})"
    )
    node = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(TOP)}
    )
    assert node.stdout is not None
    with node:
        process = int(node.stdout.readline())
        node.kill()
    wait_for(lambda: not is_there(process), "the helper is gone")


def test_questions_asked_aside_are_answered_in_their_order_and_elsewhere() -> None:
    told: SimpleQueue[object] = SimpleQueue()
    with asking_aside(MODULE, "the sum") as ask:
        for number in range(3):
            ask({"do": "echo", "number": number}, told.put, told.put)
        ask({"do": "refuse", "why": "no"}, told.put, told.put)
        assert [told.get(timeout=240) for _ in range(3)] == [{"do": "echo", "number": number} for number in range(3)]
        assert isinstance(told.get(timeout=240), Refused)


def test_what_is_not_answered_when_nobody_waits_any_more_is_given_up() -> None:
    told: list[object] = []
    with asking_aside(MODULE, "the sum") as ask:
        ask({"do": "sleep"}, told.append, told.append)
        ask({"do": "echo"}, told.append, told.append)
    assert [type(one) for one in told] == [RunFailed, RunFailed]
