"""Benchmarks of this machine: start, hops, gossip, audit and noise. `p2pdp bench` shows them."""
