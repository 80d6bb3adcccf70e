"""Truth: does a note say what its steps did?  ``python bench/truth`` judges notes made of recorded
sessions; nothing here shares code with what writes them, and no form of a note is assumed.
"""
