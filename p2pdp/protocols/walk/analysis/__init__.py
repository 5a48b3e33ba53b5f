"""What launcher, planner and auditor know of the walk family; nodes do not import it."""
