"""The family of protocols named shuffle.*."""
