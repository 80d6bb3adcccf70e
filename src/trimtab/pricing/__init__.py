"""Prices, cache rules, billed usage, and forecasts of cost and size."""
