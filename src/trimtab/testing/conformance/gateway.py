"""A gateway by its URL, put before the strict provider: what the provider gets is judged."""

from __future__ import annotations

import http.client
import json
import shlex
import socket
import subprocess
import time
from typing import Any
from urllib.parse import urlsplit

from trimtab.errors import InvalidSetting, TrimtabError
from trimtab.testing.conformance.targets import Sent, TargetConversation, TargetOptions
from trimtab.testing.conformance.writing import FORMATS, MODELS
from trimtab.testing.provider import StrictProvider

ANSWER_SECONDS = 60.0

PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "bedrock": "/model/{model}/converse",
    "gemini": "/v1beta/models/{model}:generateContent",
    "gemini-interactions": "/v1beta/interactions",
}
"""Where each format is answered, behind the gateway's URL."""

_HEADERS = {
    "content-type": "application/json",
    "authorization": "Bearer conformance",
    "x-api-key": "conformance",
    "x-goog-api-key": "conformance",
    "anthropic-version": "2023-06-01",
}


class NotSent(TrimtabError):
    """The gateway passed nothing on; the message has what it answered."""


class Gateway:
    """A gateway that passes requests on to the strict provider.

    The provider listens on ``options.upstream``; the gateway has to be pointed there before, or is
    started with ``options.start``.  Raises InvalidSetting where the gateway does not answer.
    """

    formats: tuple[str, ...] = FORMATS

    def __init__(self, url: str, options: TargetOptions) -> None:
        self.name = url
        self._parts = urlsplit(url)
        host, _, port = options.upstream.rpartition(":")
        if host not in ("127.0.0.1", "localhost", "") or not port.isdigit():
            raise InvalidSetting(f"upstream {options.upstream!r}: give 127.0.0.1:PORT")
        self.provider = StrictProvider().start(int(port))
        self._process: subprocess.Popen[bytes] | None = None
        try:
            if options.start:
                command = shlex.split(options.start.replace("{upstream}", self.provider.url))
                self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            self._wait(options.seconds)
        except BaseException:
            self.close()
            raise

    def conversation(self, format: str) -> TargetConversation:
        """One of a format; the gateway tells conversations apart by what they say."""
        return _Requests(self, format)

    def post(self, path: str, body: bytes) -> tuple[int, str]:
        """Status and text of one answer.  Raises OSError, http.client.HTTPException."""
        is_tls = self._parts.scheme == "https"
        kind = http.client.HTTPSConnection if is_tls else http.client.HTTPConnection
        connection = kind(self._parts.hostname or "", self._parts.port, timeout=ANSWER_SECONDS)
        try:
            base = self._parts.path.rstrip("/")
            connection.request("POST", base + path, body, _HEADERS)
            answer = connection.getresponse()
            return answer.status, answer.read().decode("utf-8", "replace")
        finally:
            connection.close()

    def close(self) -> None:
        """Stops the provider, and the gateway where it was started here."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self.provider.close()

    def _wait(self, seconds: float) -> None:
        """Until somebody listens at the URL."""
        port = self._parts.port or (443 if self._parts.scheme == "https" else 80)
        until = time.monotonic() + seconds
        while True:
            if self._process is not None and self._process.poll() is not None:
                raise InvalidSetting(f"the gateway ended with code {self._process.returncode}")
            try:
                socket.create_connection((self._parts.hostname or "", port), 1.0).close()
                return
            except OSError as error:
                if time.monotonic() > until:
                    raise InvalidSetting(
                        f"nobody listens at {self.name}: {error}; its upstream is "
                        f"{self.provider.url}"
                    ) from None
            time.sleep(0.05)


class _Requests:
    def __init__(self, gateway: Gateway, format: str) -> None:
        self._gateway, self._format = gateway, format

    def send(self, request: dict[str, Any]) -> Sent:
        """The last request that the provider got for it.  Raises NotSent."""
        body = request
        if self._format in ("bedrock", "gemini"):  # the path names the model
            body = {key: value for key, value in request.items() if key != "modelId"}
        seen = self._gateway.provider.requests
        before = len(seen)
        path = PATHS[self._format].format(model=MODELS[self._format].replace(":", "%3A"))
        status, said = self._gateway.post(path, json.dumps(body).encode())
        came = [one for one in seen[before:] if one.operation == "generate"]
        if not came:
            raise NotSent(f"the gateway answered {status} and sent nothing: {said[:160]}")
        sent = came[-1].body
        del seen[before:]
        return Sent({**sent, "modelId": MODELS["bedrock"]} if self._format == "bedrock" else sent)

    def recall(self, handle: str) -> str | None:
        """A gateway offers none here: what it keeps is behind tools of its own."""
        return None

    def close(self) -> None:
        """Every request was a connection of its own."""
