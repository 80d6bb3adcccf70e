"""Replay: real transcripts through reduction policies, with no model and no network.

Knows what is public here: ``read`` for recordings, and the parts that the command is made of.
"""
