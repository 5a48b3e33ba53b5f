"""Benchmarks of this machine: start, hops, gossip and audit. `p2pdp bench` shows them."""
