"""A door of the soak: the providers' own clients, wrapped, around one session on a store."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import anthropic
import httpx2
import openai

import trimtab
from soak.clients import WINDOW
from soak.speeches import Speech, Wire

REFUSED = (openai.APIStatusError, anthropic.APIStatusError)
AWAY = (openai.APIConnectionError, anthropic.APIConnectionError, httpx2.HTTPError)


class Wrapped:
    """``waits``: clients whose calls are awaited, on a loop of the thread that sends."""

    def __init__(self, url: str, store: str, *, waits: bool) -> None:
        self.name = "wrap, async" if waits else "wrap"
        self.url, self.loop = url, asyncio.new_event_loop() if waits else None
        self.session = trimtab.Session(window=WINDOW, store=store, recall=True)
        made = {"api_key": "x", "max_retries": 0}
        around = {"session": self.session, "notes": True}
        openai_client = openai.AsyncOpenAI if waits else openai.OpenAI
        anthropic_client = anthropic.AsyncAnthropic if waits else anthropic.Anthropic
        http_client = httpx2.AsyncClient if waits else httpx2.Client
        self.openai: Any = trimtab.wrap(openai_client(base_url=f"{url}/v1", **made), **around)
        self.anthropic: Any = trimtab.wrap(anthropic_client(base_url=url, **made), **around)
        self.http: Any = trimtab.wrap(http_client(timeout=60), **around)

    def send(self, speech: Speech, body: Wire, headers: dict[str, str]) -> tuple[int, bytes]:
        """Through the client of this format, else through one that speaks HTTP."""
        try:
            answer = self._sent(speech, body, headers)
            answer = self.loop.run_until_complete(answer) if self.loop else answer
        except REFUSED as error:
            return error.status_code, error.response.content
        except AWAY as error:
            raise OSError(str(error)) from error
        if isinstance(answer, httpx2.Response):
            return answer.status_code, answer.content
        return 200, json.dumps(answer.to_dict()).encode()

    def _sent(self, speech: Speech, body: Wire, headers: dict[str, str]) -> Any:
        if speech.format == "openai-chat":
            return self.openai.chat.completions.create(**body, extra_headers=headers)
        if speech.format == "openai-responses":
            return self.openai.responses.create(**body, extra_headers=headers)
        if speech.format == "anthropic":
            return self.anthropic.messages.create(**body, extra_headers=headers)
        return self.http.post(self.url + speech.path, json=body, headers=headers)

    def close(self) -> None:
        """Write what waits."""
        self.session.close()
        if self.loop:
            self.loop.close()
