"""The papers' figures and tables, made again from the code that runs live; one module of `figures/` each."""
