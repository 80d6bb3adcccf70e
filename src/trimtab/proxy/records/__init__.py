"""What the proxy keeps of sessions and requests; ``addons/records.py`` writes it."""
