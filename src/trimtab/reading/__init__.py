"""Requests as they come: parsed, known from before, and what stands in them."""
