"""Parts of a session: one turn, conversations in a store, recall, pruning, statistics."""
