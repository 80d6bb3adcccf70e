"""One request on its way, and what is kept of it for the next.

Knows the order of the steps and the journal.  Does not know how a reduction is made.
"""
