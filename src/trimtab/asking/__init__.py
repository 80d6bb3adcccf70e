"""Texts in a model's words: what is asked, of whom, within which bounds."""
