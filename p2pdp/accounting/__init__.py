"""Accountants: from what was seen to how much it could have told."""
