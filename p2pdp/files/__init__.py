"""The only reader and writer of the files that people hand in or look at: specs, data, edge lists, run folders."""
