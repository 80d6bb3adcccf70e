"""Whether a result says that its call failed, where no flag says so, and what kind of failure.

Knows the error texts of well-known tools.  Does not know transcripts.
"""

from __future__ import annotations

import re
from typing import Literal

Category = Literal["permission", "file system", "validation", "network", "parse", "state", "other"]

LONGEST_CHARS = 2_000
"""An error text is short; what begins with the same words and goes on is a file or a log."""
LONGEST_LINES = 25

_ANY = r"|".join(
    (
        r"The user rejected permission to use this specific tool call",
        r"The user doesn't want to (?:proceed with|take) this (?:tool use|action)",
        r"The user has blocked you from ",
        r"Tool execution aborted",
        r"<tool_use_error>",
        r"Error executing tool\b",
        r"Error: (?:Tool|Unknown tool|No such tool)\b",
        r"InputValidationError: ",
    )
)
_OF_TOOL: tuple[tuple[str, str], ...] = (
    (
        r"edit|replace",
        r"oldString not found in content|oldString and newString must be different"
        r"|Found multiple matches for oldString|File [^\n]{1,400} not found"
        r"|Could not find the exact text in |String to replace not found in file"
        r"|No replacement was performed\b",
    ),
    (r"write|create", r"File [^\n]{1,400} is not in the current working directory"),
    (
        r"read|view|open",
        r"File not found|Cannot read binary file|The user has blocked you from reading"
        r"|File does not exist\.?\s*\Z",
    ),
    (
        r"bash|shell|exec|terminal|command",
        r"Command terminated after exceeding timeout|Command aborted by user",
    ),
    (r"grep|search|glob", r"pattern is required|ripgrep failed"),
    (r"patch", r"Failed to parse patch|Failed to find context|No files were modified"
     r"|apply_patch verification failed"),
)  # fmt: skip
_EVERYWHERE = re.compile(rf"\s*(?:{_ANY})")
_PER_TOOL = tuple(
    (re.compile(tools, re.IGNORECASE), re.compile(rf"\s*(?:Error: )?(?:{texts})"))
    for tools, texts in _OF_TOOL
)


def says_failed(tool: str, text: str) -> bool:
    """Whether a result is one of the known error texts of this tool.

    It has to begin with one and to be short: a file or a log that quotes such a text is none.
    """
    if len(text) > LONGEST_CHARS or text.count("\n") >= LONGEST_LINES:
        return False
    if _EVERYWHERE.match(text):
        return True
    return any(tools.search(tool) and texts.match(text) for tools, texts in _PER_TOOL)


_CATEGORIES: tuple[tuple[Category, str], ...] = (
    ("permission", r"permission|not permitted|not allowed|denied|rejected|blocked you|forbidden"
     r"|unauthori[sz]ed|EACCES|EPERM|doesn't want to|requires approval|\b40[13]\b"),
    ("state", r"modified since|been modified|changed since|not been read yet|read it first"
     r"|doom loop|no files were modified|sibling tool call|already (?:exists|running|in progress)"
     r"|aborted|interrupted|temporarily unavailable|conflict"),
    ("parse", r"fail(?:ed|ure) to parse|parse error|cannot parse|could not parse|syntax ?error"
     r"|unexpected (?:token|end|eof)|malformed|JSONDecodeError|invalid json"),
    ("validation", r"(?:string|text|context|pattern)[^\n]{0,60} not found|multiple matches"
     r"|must be|is required|required (?:parameter|property|argument|field)|missing \d? ?(?:required"
     r"|parameter|argument)|invalid|validation|unknown (?:tool|skill|command|option|argument)"
     r"|exact text|failed to find context|no replacement"),
    ("file system", r"no such file|file[^\n]{0,400} not found|not found: |does not exist|ENOENT"
     r"|EISDIR|ENOTDIR|EEXIST|ENOSPC|is a directory|not a directory|binary file|no space left"
     r"|current working directory|exceeds maximum"),
    ("network", r"ECONN|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|getaddrinfo|connection (?:refused|reset"
     r"|timed out|error|aborted)|network|could not resolve|fetch failed|\b50[234]\b|\b429\b|ssl\b"
     r"|certificate|dns\b"),
)  # fmt: skip
_COMPILED = tuple((name, re.compile(words, re.IGNORECASE)) for name, words in _CATEGORIES)
_HEAD = 600


def category(text: str) -> Category:
    """What went wrong, told from the beginning of an error text; "other" where it does not say."""
    head = text[:_HEAD]
    return next((name for name, words in _COMPILED if words.search(head)), "other")
