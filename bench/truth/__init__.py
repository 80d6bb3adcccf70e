"""Truth: does a note say what its steps did?  ``python bench/truth`` judges notes made of recorded
sessions, with the judge of ``trimtab check --session``.
"""
