"""A walk on a ring before it has taken place: its machines run over symbols, along a schedule that is public.

Nothing about a ring's walk is left to chance but its noise, so the transcript of a run in which nothing is lost is
known beforehand, to the last term. Every contribution counts as a value of its own, whatever the users' data: letting
them vary one by one can only raise a leak, and on a ring, where no weight is negative, does not.
"""

from __future__ import annotations

from collections import deque
from functools import partial

from p2pdp.core.events import Received, tell
from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.core.messages import BEGIN, TOKEN, Item
from p2pdp.core.step import Message
from p2pdp.core.values import LinearForm
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk.walking import WalkPlan
from p2pdp.replay.foreseen import Symbols
from p2pdp.replay.transcript import Transcript
from p2pdp.tasks.inputs import SymbolicInputs


def is_scheduled(run: RunPlan) -> bool:
    """Whether the plan alone says who has a token at which step."""
    return isinstance(run.plan, WalkPlan) and run.plan.order == "ring"


def scheduled(run: RunPlan) -> Transcript:
    """What everybody will see; the caller owes a plan that `is_scheduled`."""
    plan: WalkPlan = run.plan
    visits = plan.steps * plan.tokens // plan.n
    draws = [Symbols(user) for user in range(run.n)]
    inputs = [SymbolicInputs(user, visits) for user in range(run.n)]
    machines = [run.protocol.machine(plan, user, (), inputs[user]) for user in range(run.n)]
    seen = Transcript()
    for user in range(run.n):
        seen.received[user] = []
        seen.draws[user], seen.values[user] = draws[user].drawn, visits
    totals: dict[int, LinearForm] = {}
    events = deque((start.user, BOOTSTRAP, Message(BEGIN, (start.item, 0))) for start in plan.starts)
    while events:
        user, sender, message = events.popleft()
        step = tell(machines[user], Received(sender, message), 0.0, draws[user])
        if message.type == TOKEN and sender != user:
            seen.received[user].append(message.value)
        for send in step.sends:
            if send.to == CURATOR:
                totals[Item(*send.message.fields).item] = send.message.value
            else:
                events.append((send.to, user, send.message))
    seen.totals = [totals[item] for item in sorted(totals)]
    seen.published = (run.protocol.publish(plan, seen.totals),)
    randomized = {
        report: tuple(draws[draw.peer].drawn[draw.number] for draw in made)
        for user in inputs
        for report, made in user.randomized.items()
    }
    seen.find_noise = partial(seen.noise_among, randomized, plan.unit)
    return seen
