"""What people and tools ask over HTTP about a run, and a node."""
