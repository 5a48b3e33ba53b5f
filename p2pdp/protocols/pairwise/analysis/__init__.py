"""The heavy half of pairwise sums: how their runs are judged."""
