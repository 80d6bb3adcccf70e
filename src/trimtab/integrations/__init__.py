"""Where trimtab plugs into agent frameworks; each folder needs the extra of its name.

Knows nothing itself.
"""
