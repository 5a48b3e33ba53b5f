"""The analysis of the gossip family, for launcher, planner and auditor; nodes do not import it."""
