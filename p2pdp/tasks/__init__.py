"""The tasks that users compute together, and their inputs as machines see them."""
