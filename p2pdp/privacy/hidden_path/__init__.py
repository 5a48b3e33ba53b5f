"""Tokens whose path is hidden between two visits: which losses an observer's visits lead to."""
