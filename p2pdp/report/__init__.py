"""Documents and pages about a run, for people and programs."""
