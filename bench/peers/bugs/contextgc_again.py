from contextgc import compile_messages

messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello."}]
sizes = []
for _ in range(3):
    messages, _ = compile_messages(messages)
    sizes.append(len(messages[0]["content"]))
print(sizes[0] < sizes[1] < sizes[2])
# prints True
