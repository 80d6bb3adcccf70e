"""The recall tool as a tool of LangChain: the model gets back what its notes name.

Knows how LangChain hands a tool the agent's state.  What is answered stands in ``passages``.
"""

from __future__ import annotations

from langchain.tools import ToolRuntime
from langchain_core.tools import BaseTool, StructuredTool

from trimtab.integrations.langchain.keeping import Sessions
from trimtab.turns.passages import answer
from trimtab.turns.recalling import DESCRIPTION, NAME


def recall_tool(sessions: Sessions) -> BaseTool:
    """A tool that answers from the session of the agent that calls it."""

    def recall(
        handle: str,
        runtime: ToolRuntime,
        start: int | None = None,
        end: int | None = None,
        search: str | None = None,
    ) -> str:
        asked = {"handle": handle, "start": start, "end": end, "search": search}
        return answer(sessions.of_state(runtime.state).session, asked).text

    # Annotations are text here, and LangChain looks for the injected argument among the types.
    recall.__annotations__["runtime"] = ToolRuntime
    return StructuredTool.from_function(recall, name=NAME, description=DESCRIPTION)
