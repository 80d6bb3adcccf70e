from langchain.agents.middleware import ClearToolUsesEdit
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

cleared, messages = [], [HumanMessage("Go.")]
for n in range(12):
    messages += [AIMessage("", tool_calls=[{"name": "read", "args": {}, "id": str(n)}])]
    messages += [ToolMessage("word " * 200, tool_call_id=str(n))]
    ClearToolUsesEdit(trigger=900).apply(sent := list(messages), count_tokens=lambda m: 999)
    cleared.append(sum(m.content == "[cleared]" for m in sent))
print(cleared)
# prints [0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
