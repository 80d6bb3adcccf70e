"""Conversations over many turns: a turn, conversations in a store, recall, pruning, statistics."""
