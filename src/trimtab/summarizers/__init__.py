"""Summaries written by a model: the prompts, the limits on them, and how answers are used."""
