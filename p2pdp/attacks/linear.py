"""The noised values of others that one user can solve the messages of a linear protocol for.

The composition of each message follows from the plan and the public graph (`replay/foreseen.py`), as long as everything
went as planned. A user's noised value is read where some combination of all that the observer received and sent, and
of the draws that it shares with others, has that user's value in it with weight 1 and nothing else but that user's own
noise. Messages whose public parts are not
those foreseen show that something was late or lost, and then nothing is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from p2pdp.attacks.truths import ONLY_PLACE
from p2pdp.core.arrays import Floats
from p2pdp.core.draws import Mechanism
from p2pdp.core.errors import Refused
from p2pdp.core.ids import CURATOR, Peer, is_user
from p2pdp.core.messages import RESULT
from p2pdp.core.step import Message
from p2pdp.core.values import PAIR, LinearForm, Source, pair_source
from p2pdp.ledger.records import (
    ARRIVED,
    PAIRED,
    RECEIVED,
    REFUSED,
    SALT_BYTES,
    SENT,
    Contents,
    other_end,
    public_message,
    whole_message,
)
from p2pdp.mechanisms.sampler import StreamSampler
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.foreseen import Foreseen

Link = tuple[Peer, Peer]
Told = tuple[list[LinearForm], list[Any]]

_READ_WITHIN: Final = 1e-9
_UNLIKE: Final = "messages are not those of a run in which nothing is late or lost, so what they are made of is hidden"


def read_linear(run: RunPlan, observer: Peer, contents: Contents, foreseen: Foreseen) -> dict[Peer, Any]:
    """Return the noised values that can be told, in steps of the grid."""
    forms, values = _told(observer, contents, foreseen.links)
    _add_result(run, contents, foreseen, forms, values)
    _add_pairs(observer, contents, forms, values)
    if not forms:
        return {}
    rows, sources = _rows(forms)
    flat = np.array([np.asarray(value, dtype=np.float64).reshape(-1) for value in values])
    spanned = _basis(rows)
    values_by_user: dict[Peer, Any] = {}
    for user in range(run.n):
        wanted = _wanted(user, sources, rows)
        if user == observer or wanted is None or np.linalg.norm(wanted - spanned @ (spanned.T @ wanted)) > _READ_WITHIN:
            continue
        shares = np.linalg.lstsq(rows.T, wanted, rcond=None)[0]
        value = shares @ flat / run.plan.unit
        values_by_user[user] = value if run.plan.shape else float(value[0])
    return values_by_user


def _told(observer: Peer, contents: Contents, links: Mapping[Link, list[Message]]) -> Told:
    """Return the forms and values of all that the observer exchanged with users."""
    taken: dict[Link, int] = {}
    forms, values = [], []
    for record in contents.records:
        if record.kind not in ARRIVED and record.kind != SENT:
            continue
        other = other_end(record)
        if not is_user(other):
            continue
        link = (observer, other) if record.kind == SENT else (other, observer)
        number = taken[link] = taken.get(link, 0) + 1
        if record.kind == REFUSED:
            continue
        expected, public = links.get(link, ())[number - 1 : number], public_message(record)
        if not expected or (expected[0].type, list(expected[0].fields)) != (public.type, list(public.fields)):
            raise Refused(_UNLIKE)
        if isinstance(expected[0].value, LinearForm):
            forms.append(expected[0].value)
            values.append(whole_message(record).value)
    return forms, values


def _add_result(
    run: RunPlan, contents: Contents, foreseen: Foreseen, forms: list[LinearForm], values: list[Any]
) -> None:
    """Add what was published, where it is one number or vector that the curator made by adding and scaling."""
    told = foreseen.transcript.published or ()
    if len(told) != 1:
        return
    form = run.protocol.publish(run.plan, told) if run.completes_per_user else told[0]
    for record in contents.records if isinstance(form, LinearForm) else ():
        if record.kind == RECEIVED and record.body.sender == CURATOR and public_message(record).type == RESULT:
            forms.append(form)
            values.append(whole_message(record).value)


def _add_pairs(observer: Peer, contents: Contents, forms: list[LinearForm], values: list[Any]) -> None:
    """Add the draws that the observer shares with others; its own ledger has their keys."""
    for peer, number, drawn in shared_draws(contents):
        forms.append(LinearForm.of(pair_source(observer, peer, number)))
        values.append(drawn)


def shared_draws(contents: Contents) -> Iterator[tuple[Peer, int, Any]]:
    """Yield the other user, the number and the value of each draw that the owner of this ledger shares."""
    for record in contents.records:
        if record.kind == PAIRED and record.value is not None:
            peer, number, name, scale, categories, shape = record.body
            sampler = StreamSampler(record.value[SALT_BYTES:])
            yield peer, number, sampler.batch(Mechanism(name, scale, categories), tuple(shape), 1)[0]


def _rows(forms: list[LinearForm]) -> tuple[Floats, list[Source]]:
    expanded = [form.expand() for form in forms]
    sources = sorted({source for form in expanded for source in form})
    columns = {source: column for column, source in enumerate(sources)}
    rows = np.zeros((len(expanded), len(sources)))
    for row, form in zip(rows, expanded, strict=True):
        for source, weight in form.items():
            row[columns[source]] = weight
    return rows, sources


def _basis(rows: Floats) -> Floats:
    """Return an orthonormal basis of what the rows span."""
    _, sizes, turned = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(turned[sizes > _READ_WITHIN * sizes.max(initial=0.0)].T)


def _wanted(user: Peer, sources: list[Source], rows: Floats) -> Floats | None:
    """Return the user's only value with its noise, in the ratios of the first message that holds them."""
    own = [column for column, source in enumerate(sources) if source.peer == user and source.kind != PAIR]
    inputs = [column for column in own if sources[column].kind == "input"]
    if len(inputs) != 1:
        return None
    first = rows[np.nonzero(rows[:, inputs[0]])[0][0]]
    wanted = np.zeros(len(sources))
    wanted[own] = first[own] / first[inputs[0]]
    return wanted


def readings(values_by_user: Mapping[Peer, Any]) -> list[tuple[tuple[Peer, ...], Any, list[tuple[int, int]]]]:
    """Return the values as readings of an analysis, for users who contribute once."""
    return [((user,), value, [ONLY_PLACE]) for user, value in sorted(values_by_user.items())]
