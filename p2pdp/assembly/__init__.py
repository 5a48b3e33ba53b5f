"""Puts a run's parts together, the same way for live nodes and for the simulator."""
