import litellm

text = "\n".join(f"line {n}: value {n * 7919} of the parser" for n in range(2000))
call = {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}
messages = [{"role": "user", "content": "Mend it."}]
messages += [{"role": "assistant", "content": "", "tool_calls": [call]}]
messages += [{"role": "tool", "tool_call_id": "a", "content": text}]
messages += [{"role": "assistant", "content": "Well."}, {"role": "user", "content": "Line 19?"}]
done = litellm.compress(messages, model="gpt-4o", compression_trigger=5_000)
print(len(done["messages"][2]["content"]) < len(text), sorted(done["cache"]))
# prints True ['message_0', 'message_1']
