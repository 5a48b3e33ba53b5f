"""Privacy losses on a grid: discretising them, composing them, and reading epsilon and delta from the result."""
