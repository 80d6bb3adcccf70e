from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, trim_messages

call = {"name": "read", "args": {}, "id": "a"}
messages = [HumanMessage("Mend the parser."), AIMessage("", tool_calls=[call])]
messages += [ToolMessage("word " * 900, tool_call_id="a")]
print(trim_messages(messages, max_tokens=500, token_counter="approximate", strategy="last",
                    start_on="human", end_on=("human", "tool")))  # fmt: skip
# prints []
