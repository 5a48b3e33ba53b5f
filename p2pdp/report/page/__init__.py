"""The parts of `report.html`: facts in, markup out; nothing here reads a file or a clock."""
