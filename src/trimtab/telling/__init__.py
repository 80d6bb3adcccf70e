"""What is told of a fit: logs, events, spans.

Knows what came out.  Changes nothing.
"""
