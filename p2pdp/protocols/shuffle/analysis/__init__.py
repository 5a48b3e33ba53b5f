"""The analysis of the shuffle family, for launcher, planner and auditor; nodes do not import it."""
