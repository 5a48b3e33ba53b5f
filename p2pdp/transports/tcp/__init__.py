"""Frames over TCP: everybody listens, and connections are dialled when they are first needed."""
