"""A discrete-event world in which real hosts run over a simulated network and simulated disks."""
