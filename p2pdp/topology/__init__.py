"""Who may talk to whom: graphs, made from a spec's `[graph]` section."""
