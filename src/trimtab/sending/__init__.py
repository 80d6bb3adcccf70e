"""Sent again, smaller: the parts of ``flow``.

Knows refusals and limits.  Does not know HTTP.
"""
