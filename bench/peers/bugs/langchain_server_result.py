from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models.fake_chat_models import FakeListChatModel as Model
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

code = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {}}
done = {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": {}}
chat = [HumanMessage("Go."), AIMessage([code], tool_calls=[{"name": "f", "args": {}, "id": "a"}])]
chat += [ToolMessage("7", tool_call_id="a"), AIMessage([done]), HumanMessage("How much?")]
model, keep = Model(responses=["They asked."]), ("messages", 2)
cut = SummarizationMiddleware(model, trigger=("messages", 5), keep=keep)
print([m.content for m in cut.before_model({"messages": chat}, None)["messages"][2:-1]])
# prints [[{'type': 'code_execution_tool_result', 'tool_use_id': 'srvtoolu_1', 'content': {}}]]
