"""deepagents: what it puts in front of an agent's model, without its own tools and prompts."""

from __future__ import annotations

import tempfile
from typing import Any

from common import TRIGGER
from langchain_targets import stub


def middlewares(window: int) -> Any:
    """Its SummarizationMiddleware (history goes to a file), then PatchToolCalls.

    What it does to a large result while its tool returns is not seen: results come from outside.
    """
    from deepagents.backends import FilesystemBackend
    from deepagents.middleware.patch_tool_calls import PatchToolCallsMiddleware
    from deepagents.middleware.summarization import SummarizationMiddleware

    trigger = ("tokens", int(TRIGGER * window))
    files = FilesystemBackend(tempfile.mkdtemp(), virtual_mode=True)
    cut = {"trigger": ("tokens", int(0.5 * window)), "keep": ("messages", 20)}
    return [
        SummarizationMiddleware(
            model=stub(), backend=files, trigger=trigger, keep=("messages", 6),
            truncate_args_settings=cut,
        ),
        PatchToolCallsMiddleware(),
    ]  # fmt: skip
