"""Plans the edits of a request: what may be reduced, which lines stay, folding old steps into
notes, and the choice with the least loss.
"""
