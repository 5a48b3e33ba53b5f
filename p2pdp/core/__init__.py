"""The vocabulary of every other room: steps, events, values, draws, claims, the spec, and errors.

Nothing here performs input or output, and nothing here imports another room.
"""
