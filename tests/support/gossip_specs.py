"""Specs of small gossip runs, and what their worlds leave as evidence."""

from __future__ import annotations

from typing import Any

from p2pdp.files.spec import parse_spec
from p2pdp.replay.evidence import Evidence
from p2pdp.sim.world import World


def gossip(n: int, kind: str, terms: str = "rounds = 4", protocol: str = "average", patience_s: float = 3.0) -> str:
    return (
        f'[run]\nprotocol = "gossip.{protocol}"\nnodes = {n}\nseed = 1\npatience_s = {patience_s}\n'
        f'[graph]\nkind = "{kind}"\n[gossip]\n{terms}\n[noise]\nmechanism = "gaussian"\nsigma = 1.0\n'
        '[data]\nkind = "uniform"\nclip = [0.0, 1.0]\n[privacy]\ndelta = 1e-5\n'
    )


RING = gossip(4, "ring")
PAIRS = gossip(4, "ring", "activations = 10", "randomized")


def shared(text: str) -> str:
    """The same with noise that neighbours share."""
    return text.replace("sigma = 1.0", "sigma = 1.0\npair_sigma = 4.0")


LOSSY: dict[str, Any] = {"loss": 0.1, "duplication": 0.1, "jitter_s": 0.02}


def evidence_of(world: World, text: str) -> Evidence:
    spec = parse_spec(text, None)
    views = {peer: bytes(process.disk.view) for peer, process in world.processes.items()}
    private = {peer: bytes(process.disk.private) for peer, process in world.processes.items()}
    return Evidence(spec, world.roster.spec_digest, world.roster, views, private)
