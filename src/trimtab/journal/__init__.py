"""Edits over the turns of a conversation: which count for a request, how they are written, and
reading what they took out.
"""
