"""The asyncio shell of a peer: host, transport, disk, clock and entropy."""
