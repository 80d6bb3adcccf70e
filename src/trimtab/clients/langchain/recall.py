"""The recall and note tools as LangChain tools."""

from __future__ import annotations

from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, StructuredTool

from trimtab.clients.langchain.session_cache import SessionCache
from trimtab.journal.excerpts import answer
from trimtab.sessions.recall_tool import DESCRIPTION, NAME
from trimtab.transcript import model_notes
from trimtab.transcript.model_notes import names_in_calls, noted


def recall_tool(sessions: SessionCache) -> BaseTool:
    """A tool that answers from the conversation of the agent that calls it."""

    def recall(
        runtime: ToolRuntime,
        search: str | None = None,
        file: str | None = None,
        handle: str | None = None,
        steps: str | None = None,
        lines: str | None = None,
        start: int | None = None,
        end: int | None = None,
    ) -> str:
        arguments = {
            "search": search, "file": file, "handle": handle, "steps": steps, "lines": lines,
            "start": start, "end": end,
        }  # fmt: skip
        return answer(sessions.of_state(runtime.state).originals, arguments).text

    # Annotations are text here, and LangChain looks for the injected argument among the types.
    recall.__annotations__["runtime"] = ToolRuntime
    return StructuredTool.from_function(recall, name=NAME, description=DESCRIPTION)


def note_tool() -> BaseTool:
    """A tool whose calls stay whole in what the agent's model is sent."""

    def note(runtime: ToolRuntime, name: str, text: str) -> str:
        calls = [
            call["args"]
            for message in runtime.state["messages"]
            if isinstance(message, AIMessage)
            for call in message.tool_calls
            if call["name"] == model_notes.NAME and call["id"] != runtime.tool_call_id
        ]
        return noted(names_in_calls(calls), {"name": name, "text": text}).text

    note.__annotations__["runtime"] = ToolRuntime
    return StructuredTool.from_function(
        note, name=model_notes.NAME, description=model_notes.DESCRIPTION
    )
