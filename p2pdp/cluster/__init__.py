"""A run on one machine: one operating-system process a user, and one for bootstrap and curator."""
