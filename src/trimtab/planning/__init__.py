"""What is shown instead of what: lines, levels, drops, and the smallest form.

Knows sizes and offers.  Does not know JSON, nor where anything is kept.
"""
