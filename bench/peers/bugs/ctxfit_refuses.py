import ctxfit

messages = [{"role": "user", "content": "Go."}]
messages += [{"role": "tool", "tool_call_id": "gone", "content": "ok"}]
try:
    ctxfit.fit(messages, total_budget=10_000)
except ctxfit.PairingBroken as error:
    print(error)
# prints input messages already break tool_call/tool_result pairing: ...
