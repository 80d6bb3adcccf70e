"""Computes what conversations cost by their reported usage, and would have cost under policies.

Figures come from logs with the billed usage of each model call; without it there is no figure.
"""
