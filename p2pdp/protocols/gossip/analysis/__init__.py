"""What launcher, planner and auditor know of the gossip family; nodes do not import it."""
