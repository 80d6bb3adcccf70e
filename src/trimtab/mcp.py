"""An MCP server for one tenant's originals: the tools recall, note, status and pin.

Serves standard input and output, or HTTP on this machine only.  Needs the extra ``mcp``.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs

from trimtab.errors import MissingExtra, StoreError, UnknownHandle
from trimtab.journal.excerpts import RecallAnswer, answer
from trimtab.journal.originals_reader import OriginalsReader
from trimtab.sessions.recall_tool import DESCRIPTION, NAME, SCHEMA
from trimtab.transcript import model_notes
from trimtab.transcript.model_notes import noted

HOST = "127.0.0.1"
"""Never another address, because every client of the server can read all the tenant's originals."""
PATH = "/mcp"
WRONG_SECONDS = 0.5
"""Seconds by which the answer to a wrong token is delayed."""

_TEXT = {"type": "string"}


def _takes(**properties: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


TOOLS: tuple[tuple[str, str, Mapping[str, Any], bool], ...] = (
    (NAME, DESCRIPTION, SCHEMA, True),
    (
        model_notes.NAME,
        model_notes.DESCRIPTION,
        model_notes.SCHEMA,
        True,
    ),
    ("status", "Says how much is kept of this user's conversations.", _takes(), True),
    (
        "pin",
        "Keeps something whole in the conversation from now on, back from a cut if need be: the "
        "original behind a handle, or, of the conversation written last, the part that has a "
        "text, or a file as it was read last. It takes room: for a look, recall is enough.",
        {
            "type": "object",
            "properties": {
                "handle": {**_TEXT, "description": "as the note names it"},
                "text": {**_TEXT, "description": "words, exactly as they were written"},
                "file": {**_TEXT, "description": "a path"},
            },
        },
        False,
    ),
)
"""(name, description, input schema, whether it only reads); the same bytes in every release."""


def said(stored: OriginalsReader, name: str, arguments: Mapping[str, Any]) -> RecallAnswer:
    """The answer to one tool call; never raises for any input that a model may write."""
    try:
        if name == NAME:
            return answer(stored, arguments)
        if name == "status":
            return RecallAnswer(stored.status())
        if name == model_notes.NAME:  # which names there are, only the conversation knows
            return RecallAnswer(*noted((), arguments))
        return _pinned(stored, arguments)
    except UnknownHandle as error:
        return RecallAnswer(str(error), failed=True)
    except StoreError as error:
        return RecallAnswer(f"the originals cannot be read now: {error}", failed=True)


def _pinned(stored: OriginalsReader, arguments: Mapping[str, Any]) -> RecallAnswer:
    given = {key: value for key, value in arguments.items() if isinstance(value, str)}
    named = [(key, given.get(key, "").strip()) for key in ("handle", "text", "file")]
    wanted = [(key, value) for key, value in named if value]
    if len(wanted) != 1:
        return RecallAnswer("give one of handle, text and file", failed=True)
    [(key, value)] = wanted
    return RecallAnswer(
        stored.pin(value) if key == "handle" else stored.pin_words(f"{key}:{value}")
    )


def server(stored: OriginalsReader, version: str = "") -> Any:
    """The server as an object of the SDK.  Raises MissingExtra."""
    try:
        import mcp_types
        from mcp.server.lowlevel import Server
    except ImportError:
        raise MissingExtra("the MCP server needs the MCP SDK: pip install 'trimtab[mcp]'") from None
    tools = [
        mcp_types.Tool(
            name=name, description=about, input_schema=dict(schema),
            annotations=mcp_types.ToolAnnotations(read_only_hint=reads, destructive_hint=False),
        )
        for name, about, schema, reads in TOOLS
    ]  # fmt: skip
    names = {tool.name for tool in tools}

    async def listed(context: Any, params: Any) -> Any:
        return mcp_types.ListToolsResult(tools=tools)

    async def called(context: Any, params: Any) -> Any:
        if params.name not in names:
            done = RecallAnswer(
                f"no tool {params.name!r}; there are {', '.join(sorted(names))}", True
            )
        else:  # in a thread, because a slow store must not block the event loop
            done = await asyncio.to_thread(said, stored, params.name, params.arguments or {})
        content = mcp_types.TextContent(type="text", text=_sound(done.text))
        return mcp_types.CallToolResult(content=[content], is_error=done.failed)

    return Server("trimtab", version=version, on_list_tools=listed, on_call_tool=called)


def _sound(text: str) -> str:
    """``text`` with lone surrogates, which the protocol's JSON parsers refuse, as U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def run_stdio(server: Any) -> None:
    """Serve one client over standard input and output, until it closes them."""
    from mcp.server.stdio import stdio_server

    async def serve() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    asyncio.run(serve())


def guarded(app: Any, token: str) -> Any:
    """``app`` for requests with the token only, because other users of the machine can reach it."""

    async def asgi(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or _brings(scope, token):
            await app(scope, receive, send)
            return
        await asyncio.sleep(WRONG_SECONDS)
        headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": b"give the token of the printed URL\n"})

    return asgi


def _brings(scope: Any, token: str) -> bool:
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    headers = {name.decode("latin-1").lower(): value for name, value in scope["headers"]}
    bearer = headers.get("authorization", b"").decode("latin-1").removeprefix("Bearer ")
    given = (query.get("token", [""])[-1], bearer)
    return any(hmac.compare_digest(one.encode(), token.encode()) for one in given)


def run_http(server: Any, port: int, token: str, ready: Callable[[str], None]) -> None:
    """Serve clients on this machine that have the token, in the query or as a bearer token.

    ``ready`` is called with the URL, token included, once the port is open (0: any free one).
    """
    import socket

    import uvicorn

    with socket.create_server((HOST, port)) as opened:
        url = f"http://{HOST}:{opened.getsockname()[1]}{PATH}?token={token}"
        app = server.streamable_http_app(streamable_http_path=PATH, host=HOST)
        config = uvicorn.Config(guarded(app, token), log_level="warning", lifespan="on")
        ready(url)
        asyncio.run(uvicorn.Server(config).serve(sockets=[opened]))
