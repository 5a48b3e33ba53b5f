"""What people and programs get to read of a run."""
