"""Replay: recorded conversations through reduction policies, without a model or a network."""
