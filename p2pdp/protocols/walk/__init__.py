"""The family of protocols named walk.*."""
