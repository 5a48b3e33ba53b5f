"""What an observer can read out of what it saw; used to test claims, so it relies on no accountant."""
