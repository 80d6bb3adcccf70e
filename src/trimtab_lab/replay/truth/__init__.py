"""Truth: does a note say what its steps did?  Judges what is sent against what was recorded; shares
no code with what writes notes, and knows no more of their form than a reader does.
"""
