"""What launcher, planner and auditor know of the shuffle family; nodes do not import it."""
