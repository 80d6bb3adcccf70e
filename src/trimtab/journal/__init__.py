"""Edits over the turns of a conversation: which apply to a request, their file format, and reading
the originals that they removed.
"""
