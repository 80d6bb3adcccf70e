from types import SimpleNamespace

from strands.agent.conversation_manager import SummarizingConversationManager as Manager

Manager._generate_summary = lambda *_: {"role": "user", "content": [{"text": "Summary."}]}
result = {"toolResult": {"toolUseId": "a", "content": [{"text": "word " * 200_000}]}}
use = {"toolUse": {"toolUseId": "a", "name": "read", "input": {}}}
told = [{"role": "user", "content": [{"text": "Go."}]}] * 12
told += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
for _ in range(100):  # what its loop does while the provider says that the prompt is too long
    Manager().reduce_context(SimpleNamespace(messages=told), e=ValueError("too long"))
print(len(told), len(told[-1]["content"][0]["toolResult"]["content"][0]["text"]))
# prints 11 1000000
