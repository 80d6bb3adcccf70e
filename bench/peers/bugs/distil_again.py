from distil import compress_messages

names = ["parser", "token", "cache", "window", "client", "server", "index", "error"]
text = "\n".join(f"2026-05-01T12:{n:02}:00Z INFO {names[n * 5 % 8]}_{n} took {n * 7919 % 9973} ms"
                 for n in range(60))  # fmt: skip
call = {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}
messages = [{"role": "assistant", "content": None, "tool_calls": [call]}]
messages += [{"role": "tool", "tool_call_id": "a", "content": text}]
once = compress_messages(messages).messages
print(compress_messages(once).messages == once)
# prints False
