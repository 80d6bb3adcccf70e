"""Sent again, smaller: the parts of ``flow``."""
