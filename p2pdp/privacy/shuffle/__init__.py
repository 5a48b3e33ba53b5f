"""Amplification by shuffling: randomized reports of which an observer sees only how many there are of each."""
