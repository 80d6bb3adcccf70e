"""Requests as they come: parsed, known from before, and what stands in them.

Knows formats only through what they read.  Does not know what will be shown.
"""
