"""OpenAI Chat Completions and its dialects: reading, refusals and their repair."""
