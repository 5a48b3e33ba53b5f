"""The named accountants of `p2pdp account`: one module a name, each with an `ACCOUNTANT`, found by its file's name."""
