"""One peer's brain: machine, channels, links and ledger joined, still without any input or output."""
