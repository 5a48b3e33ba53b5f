"""A database of runs for queries; folders and ledgers stay the truth."""
