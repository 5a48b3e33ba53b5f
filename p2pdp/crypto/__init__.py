"""Keys and what is done with them: identities, the roster, channels, sealed reports, join tokens.

The primitives are those of NaCl (X25519, XSalsa20-Poly1305, Ed25519), BLAKE2b, and ChaCha20-Poly1305 for large frames.
Apart from `entropy`, everything here is a function of its arguments: salts, nonces and seeds come from the caller.
"""
