"""Amplification by iteration: steps of descent that later noisy steps hide."""
