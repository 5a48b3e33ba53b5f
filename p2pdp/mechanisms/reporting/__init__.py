"""Randomizers of reports, what all of them have in common, and what can be estimated from reports."""
