"""The HTTP interface of a run and of a node."""
