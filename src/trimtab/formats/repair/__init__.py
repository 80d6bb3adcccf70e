"""Scans and repairs that several formats share, and rules that refusals name."""
