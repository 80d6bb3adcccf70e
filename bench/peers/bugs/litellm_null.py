from litellm.utils import get_token_count, trim_messages

call = {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}
messages = [{"role": "user", "content": "word " * 500}]
messages += [{"role": "assistant", "content": None, "tool_calls": [call]}]
messages += [{"role": "tool", "tool_call_id": "a", "content": "word " * 500}]
sent = trim_messages(messages, model="gpt-4o", max_tokens=900)
print(get_token_count(sent, model="gpt-4o") > 900, sent == messages)
# prints True True
