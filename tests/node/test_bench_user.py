from __future__ import annotations

import asyncio
from pathlib import Path

from p2pdp.files.data import load_data
from p2pdp.files.spec import parse_spec
from p2pdp.ledger.records import RECEIVED, chain_problem, read
from p2pdp.node.bench_boss import BenchBoss
from p2pdp.node.bench_user import BenchSettings, BenchUser, bound
from p2pdp.protocols.run_plan import plan_run
from p2pdp.runs.bench_hops import _SPEC

N, HOPS = 3, 30


async def test_a_boss_and_its_users_walk_both_kinds_of_hops_and_leave_ledgers(tmp_path: Path) -> None:
    spec = parse_spec(_SPEC.format(nodes=N, graph="complete", degree="", hops=HOPS, tokens=4, transport="tcp"), None)
    control = bound()
    rows = load_data(spec, N).user
    settings = BenchSettings(tmp_path, bytes(16), plan_run(spec, N, 1), rows, control.getsockname()[:2])
    boss = BenchBoss(settings, control)
    server = await boss.listen()
    users = [asyncio.ensure_future(BenchUser(settings, user).run()) for user in range(N)]
    await boss.begin()
    assert await boss.dial() > 0
    rest, draws = await boss.rest()
    assert rest.seconds > 0
    assert draws == 0, "so few hops are expected that there is nothing to lay in"
    real = [await boss.real(2), await boss.real(1)]
    bare = await boss.bare(2, HOPS)
    assert all(stretch.seconds > 0 for stretch in (*real, bare))
    growth = await boss.growth()
    await boss.close()
    server.close()
    await asyncio.gather(*users)
    views = [(tmp_path / f"{user:04d}" / "view.ledger").read_bytes() for user in range(N)]
    contents = [read(view) for view in views]
    assert all(chain_problem(content) is None for content in contents)
    assert sum(record.kind == RECEIVED for content in contents for record in content.records) > HOPS
    assert sum(user["ledger_bytes"] for user in growth) >= sum(map(len, views))
