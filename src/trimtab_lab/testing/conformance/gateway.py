"""A gateway, given by URL, in front of the strict provider; the requests that reach the provider
are judged."""

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
from trimtab_lab.testing.conformance.targets import Sent, TargetConversation, TargetOptions
from trimtab_lab.testing.conformance.writing import FORMATS, MODELS
from trimtab_lab.testing.provider import StrictProvider

ANSWER_SECONDS = 60.0

PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "bedrock": "/model/{model}/converse",
    "gemini": "/v1beta/models/{model}:generateContent",
    "gemini-interactions": "/v1beta/interactions",
}
"""The path of each format, appended to the gateway's URL."""

_HEADERS = {
    "content-type": "application/json",
    "authorization": "Bearer conformance",
    "x-api-key": "conformance",
    "x-goog-api-key": "conformance",
    "anthropic-version": "2023-06-01",
}


class NotSent(TrimtabError):
    """The gateway sent no request to the provider; the message has the gateway's answer."""


class Gateway:
    """A gateway that passes requests on to the strict provider.

    The provider listens on ``options.upstream``; the gateway must be configured for it, or is
    started with ``options.start``.  Raises InvalidSetting if the gateway does not answer.
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
        """A conversation in ``format``; the gateway recognises conversations by their content."""
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
        """Stop the provider, and the gateway if it was started here."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self.provider.close()

    def _wait(self, seconds: float) -> None:
        """Wait until a server listens at the URL."""
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
        """Send ``request``; return the last request that the provider got.  Raises NotSent."""
        body = request
        if self._format in ("bedrock", "gemini"):  # the path names the model
            body = {key: value for key, value in request.items() if key != "modelId"}
        seen = self._gateway.provider.requests
        before = len(seen)
        path = PATHS[self._format].format(model=MODELS[self._format].replace(":", "%3A"))
        status, reply = self._gateway.post(path, json.dumps(body).encode())
        came = [one for one in seen[before:] if one.operation == "generate"]
        if not came:
            raise NotSent(f"the gateway answered {status} and sent nothing: {reply[:160]}")
        sent = came[-1].body
        del seen[before:]
        return Sent({**sent, "modelId": MODELS["bedrock"]} if self._format == "bedrock" else sent)

    def recall(self, handle: str) -> str | None:
        """None: a gateway gives originals back only through tools of its own."""
        return None

    def close(self) -> None:
        """Nothing to close: every request has its own connection."""
