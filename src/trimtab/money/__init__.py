"""What it costs: prices, cache rules, what was billed, and what is still to come.

Knows tokens and prices.  Decides nothing about a single block.
"""
