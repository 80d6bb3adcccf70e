"""OpenAI Responses: how it is read, what it refuses, how that is repaired."""
