"""Graphs of who may talk to whom, made from a spec's `[graph]` section."""
