"""Lists of articles as search tools give them: how they are read, ranked and shortened.

Knows texts and a question.  Does not know blocks, offers or budgets of a request.
"""
