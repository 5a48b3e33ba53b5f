"""Bytes and their meaning: the codec, padding to a few sizes, and the outer frame.

Nothing here performs input or output, holds a key or draws anything. Whatever a peer can get
wrong is answered with `CodecError` or `PaddingError`, which callers turn into a fault.
"""
