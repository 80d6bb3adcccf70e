from types import SimpleNamespace

from strands.agent.conversation_manager import SlidingWindowConversationManager

agent = SimpleNamespace(messages=[{"role": "user", "content": [{"text": "Mend the parser."}]}])
for n in map(str, range(30)):
    use, result = {"toolUseId": n, "name": "read", "input": {}}, {"toolUseId": n, "content": []}
    agent.messages += [{"role": "assistant", "content": [{"toolUse": use}]},
                       {"role": "user", "content": [{"toolResult": result}]}]  # fmt: skip
SlidingWindowConversationManager().apply_management(agent)
print(agent.messages[0]["role"])
# prints assistant
