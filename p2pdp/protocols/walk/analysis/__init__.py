"""The analysis of the walk family, for launcher, planner and auditor; nodes do not import it."""
