from pydantic_ai import Agent, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

got = []
model = FunctionModel(lambda told, info: got.extend(told) or ModelResponse([TextPart("OK")]))
told = [ModelRequest.user_text_prompt("Go."), ModelResponse([ToolCallPart("read", {}, "a")])]
told += [ModelRequest([ToolReturnPart("read", "text of " + n, n) for n in "ab"])]
told += [ModelResponse([ToolCallPart("read", {}, "b")]), ModelRequest.user_text_prompt("Go on.")]
Agent(model).run_sync(message_history=told)
print([part.content for one in got for part in one.parts if part.part_kind == "tool-return"])
# prints ['text of a', 'The tool call was interrupted before a result was produced.']
