"""What containers start: bootstrap and nodes of one compose project, which find each other by name."""
