"""The family of protocols named gossip.*."""
