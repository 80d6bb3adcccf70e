"""What it costs: prices, cache rules, what was billed, and what is still to come."""
