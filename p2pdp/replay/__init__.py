"""Replays recorded runs over linear forms: which inputs and draws each message contains."""
