"""Attacks: read what an observer can out of its own view. They test claims, so they rely on no accountant."""
