"""Accountants turn what was seen into how much it could have told."""
