"""What a request holds: blocks, messages, groups, tool calls, and their size in tokens."""
