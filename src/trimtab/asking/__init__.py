"""Texts in a model's words: what is asked, of whom, within which bounds.

Knows models as functions of text.  Does not know requests.
"""
