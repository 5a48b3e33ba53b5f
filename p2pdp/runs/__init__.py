"""What the commands do, behind `api.py`: simulate, verify, audit, views, export."""
