"""Where requests of a format are sent: the paths of its API."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ApiPath:
    """One path of an API.

    ``path``: a pattern of the path's end; its group ``model`` is the model, if the path names it.
    """

    path: str
    streams: bool | None = None
    """Whether the answer is a stream; None: the body says (``"stream": true``)."""
    listed: bool = False
    """Whether its stream is one JSON array, unless the query asks for events (``alt=sse``)."""
    framed: bool = False
    """Whether its stream consists of AWS event-stream frames."""
    fitted: bool = True
    """False: its requests ask for no answer that fits a window (a count, a compaction), or in a way
    that nobody has tried; they are only recognised."""
    pattern: re.Pattern[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pattern", re.compile(self.path + "/?$"))

    def match(self, path: str) -> re.Match[str] | None:
        """The match of a path without its query."""
        return self.pattern.search(path)


def model_in(match: re.Match[str]) -> str | None:
    """The model that a matched path names."""
    named = match.groupdict().get("model")
    if named and "%" in named:
        from urllib.parse import unquote

        return unquote(named)
    return named or None
