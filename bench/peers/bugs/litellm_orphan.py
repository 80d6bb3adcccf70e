from litellm.utils import trim_messages

text = "the quick brown fox jumps over the lazy dog " * 20
call = {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}
messages = [{"role": "user", "content": text}]
messages += [{"role": "assistant", "content": text, "tool_calls": [call]}]
messages += [{"role": "tool", "tool_call_id": "a", "content": text}]
messages += [{"role": "user", "content": "Go on."}]
print([m["role"] for m in trim_messages(messages, model="gpt-4o", max_tokens=200)])
# prints ['tool', 'user']
