from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.crypto.addresses import Statement, read_statement, sign_statement, statement_frame
from p2pdp.services.addresses import FORGED, OUTDATED, AddressBook, Directory, News, Told
from tests.support.toys import RUN_ID, identity, roster

N = 4
ROSTER = roster(N)
RING = {user: ((user - 1) % N, (user + 1) % N) for user in range(N)}
MADE = {
    (user, counter): sign_statement(identity(user), RUN_ID, user, counter, f"10.0.{user}.{counter}:7000")
    for user in range(N)
    for counter in range(5)
}
KEYS = st.tuples(st.integers(0, N - 1), st.integers(0, 4))


def frame(user: int, counter: int) -> bytes:
    return statement_frame(MADE[user, counter])


def forged(user: int, counter: int) -> bytes:
    other = sign_statement(identity((user + 1) % N), RUN_ID, user, counter, "6.6.6.6:666")
    return statement_frame(other)


def read(frames: list[bytes]) -> set[Statement]:
    return {read_statement(data, ROSTER) for data in frames}


@settings(max_examples=60)
@given(st.lists(st.tuples(KEYS, st.booleans()), max_size=25))
def test_in_any_order_with_any_forgeries_the_newest_stands(heard: list[tuple[tuple[int, int], bool]]) -> None:
    book = AddressBook(ROSTER)
    newest: dict[int, int] = {}
    faults = {FORGED: 0, OUTDATED: 0}
    for (user, counter), honest in heard:
        taken = book.take(frame(user, counter) if honest else forged(user, counter))
        if not honest:
            faults[FORGED] += 1
            assert taken is None
            continue
        assert taken is not None
        before = newest.get(user, -1)
        expected = News.NEWER if counter > before else News.KNOWN if counter == before else News.OLDER
        assert taken == (MADE[user, counter], expected)
        faults[OUTDATED] += expected is News.OLDER
        newest[user] = max(before, counter)
    for user in range(N):
        known = f"10.0.{user}.{newest[user]}:7000" if user in newest else None
        assert book.where(user) == known
        assert book.lacks([user]) is (user not in newest)
    assert {kind: book.faults[kind] for kind in faults} == faults
    assert read(book.frames(range(N))) == {MADE[key] for key in newest.items()}


def test_a_user_that_contradicts_itself_is_a_fault_and_the_first_word_stands() -> None:
    book = AddressBook(ROSTER)
    book.take(frame(1, 2))
    again = sign_statement(identity(1), RUN_ID, 1, 2, "10.9.9.9:1")
    assert book.take(statement_frame(again)) == (again, News.KNOWN)
    assert book.where(1) == "10.0.1.2:7000"
    assert book.faults == {FORGED: 1}


@settings(max_examples=60)
@given(st.lists(KEYS, max_size=25), st.booleans())
def test_whoever_stated_knows_the_newest_of_all_its_neighbours(heard: list[tuple[int, int]], everybody: bool) -> None:
    """What users are told, answers and what is passed on, is all that they need."""
    directory = Directory(ROSTER, lambda user: None if everybody else RING[user])
    books = {user: AddressBook(ROSTER) for user in range(N)}
    stated: dict[int, int] = {}
    for user, counter in heard:
        told = directory.hear(frame(user, counter))
        stated[user] = max(counter, stated.get(user, -1))
        for answer in told.answers:
            books[user].take(answer)
        for other, onward in told.onward:
            assert other in stated
            assert other != user
            books[other].take(onward)
    for user in stated:
        around = [other for other in (range(N) if everybody else RING[user]) if other != user]
        for other in around:
            expected = f"10.0.{other}.{stated[other]}:7000" if other in stated else None
            assert books[user].where(other) == expected
        assert read(directory.for_user(user)) == {MADE[other, stated[other]] for other in around if other in stated}


def test_a_newer_one_goes_to_neighbours_only_and_a_known_one_to_nobody() -> None:
    directory = Directory(ROSTER, RING.__getitem__)
    for user in range(N):
        directory.hear(frame(user, 1))
    told = directory.hear(frame(0, 2))
    assert sorted(user for user, _ in told.onward) == [1, 3]
    assert read([onward for _, onward in told.onward]) == {MADE[0, 2]}
    again = directory.hear(frame(0, 2))
    assert (again.onward, read(list(again.answers))) == ((), {MADE[1, 1], MADE[3, 1]})
    assert directory.where(0) == "10.0.0.2:7000"


def test_to_an_older_one_the_newer_is_shown() -> None:
    directory = Directory(ROSTER, RING.__getitem__)
    directory.hear(frame(2, 4))
    told = directory.hear(frame(2, 1))
    assert (read(list(told.answers)), told.onward) == ({MADE[2, 4]}, ())
    assert directory.faults == {OUTDATED: 1}


def test_forgeries_get_no_answer() -> None:
    directory = Directory(ROSTER, lambda _user: None)
    directory.hear(frame(0, 1))
    for data in (forged(0, 3), b"", b"rubbish", frame(1, 1)[:-1]):
        assert directory.hear(data) == Told()
    assert directory.faults == {FORGED: 4}
