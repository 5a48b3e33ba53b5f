"""The ledger: write-ahead log, view and evidence in one, and the skeleton that auditors read."""
