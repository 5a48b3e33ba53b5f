"""The work of the commands, behind `api.py`: running, planning, verifying, auditing, attacking, indexing."""
