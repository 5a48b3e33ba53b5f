"""Transports move opaque frames between peers; they know addresses and nothing of what a frame holds."""
