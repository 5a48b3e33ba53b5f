"""Random walks of reports on a graph: their laws, how fast they mix, and how much two of them overlap."""
