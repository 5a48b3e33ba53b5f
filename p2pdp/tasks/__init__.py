"""What users compute: their inputs as machines see them."""
