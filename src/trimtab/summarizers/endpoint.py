"""A model behind an HTTP endpoint that is compatible with OpenAI's or Anthropic's API.

It uses the standard library.  Keys are sent, never shown.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from trimtab.errors import InvalidSetting, TrimtabError, expect, expect_text, shown

ANTHROPIC_VERSION = "2023-06-01"


class Endpoint:
    """``Endpoint("http://localhost:11434/v1", "qwen3")`` is a function from prompt to answer.

    ``url``: the base URL that SDKs take; ``/chat/completions`` or ``/v1/messages`` is added if
    missing.  ``api``: None: found by the URL.  ``key``: sent in the API's own header; "" sends
    none.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str = "",
        api: Literal["openai", "anthropic"] | None = None,
        max_tokens: int = 4_096,
        seconds: float = 60.0,
    ) -> None:
        is_web = isinstance(url, str) and url.startswith(("https://", "http://"))
        expect(is_web, "url", url, "an http or https address")
        expect_text("model", model)
        seen = "anthropic" if "anthropic" in url or "/messages" in url else "openai"
        self.api = seen if api is None else api
        if self.api not in ("openai", "anthropic"):
            raise InvalidSetting(f"api={shown(api)}: choose 'openai' or 'anthropic'")
        self.url, self.model = _address(url.rstrip("/"), self.api), model
        self.max_tokens, self.seconds = max_tokens, seconds
        self._key = key

    def __call__(self, prompt: str) -> str:
        """The answer's text.  Raises TrimtabError with the status and the server's message."""
        from urllib.error import HTTPError
        from urllib.request import HTTPRedirectHandler, Request, build_opener

        class Stay(HTTPRedirectHandler):
            """A redirect is an error: it would carry the key elsewhere."""

            def redirect_request(self, *arguments: Any) -> None:
                return None

        body = {
            "model": self.model,
            "max_tokens": self.max_tokens,
            "messages": [{"role": "user", "content": prompt}],
        }
        data = json.dumps(body).encode()
        request = Request(self.url, data, self._headers(), method="POST")
        try:
            with build_opener(Stay).open(request, timeout=self.seconds) as response:
                reply = json.load(response)
        except HTTPError as error:
            message = error.read(500).decode("utf-8", "replace")
            raise TrimtabError(f"{self.url} answered {error.code}: {message}") from None
        return _text(reply)

    def _headers(self) -> dict[str, str]:
        headers = {"content-type": "application/json"}
        if self.api == "anthropic":
            headers["anthropic-version"] = ANTHROPIC_VERSION
        if self._key:
            name, value = (
                ("x-api-key", self._key)
                if self.api == "anthropic"
                else ("authorization", f"Bearer {self._key}")
            )
            headers[name] = value
        return headers

    def __repr__(self) -> str:
        return f"Endpoint({self.url!r}, {self.model!r})"


def _address(url: str, api: str) -> str:
    if api == "openai":
        return url if url.endswith("/chat/completions") else f"{url}/chat/completions"
    if url.endswith("/messages"):
        return url
    return f"{url}/messages" if url.endswith("/v1") else f"{url}/v1/messages"


def _text(reply: Any) -> str:
    """The text of either API's reply without thinking; "" if there is none."""
    if not isinstance(reply, dict):
        return ""
    if isinstance(reply.get("content"), list):
        parts = [p for p in reply["content"] if isinstance(p, dict) and p.get("type") == "text"]
        return "".join(str(part.get("text") or "") for part in parts)
    choices = reply.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else {}
    message = first.get("message") if isinstance(first, dict) else {}
    content = message.get("content") if isinstance(message, dict) else ""
    return content if isinstance(content, str) else ""
