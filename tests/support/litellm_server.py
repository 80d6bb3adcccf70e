"""LiteLLM's own proxy server before a provider of ours, for tests.

Knows its config file and how it is started.  Asserts nothing.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import world_needs
from own_servers import free_port
from proxies import ask

import trimtab

START_SECONDS = 300.0
KEY = "sk-a-master-key-of-a-test-and-of-nothing-else"
"""What its clients send."""
SOURCE = str(Path(trimtab.__file__).resolve().parents[1])


@contextmanager
def litellm_server(folder: Path, config: str, **env: str) -> Iterator[str]:
    """Its address; ``config``: the text of its ``config.yaml``; ``env``: more variables."""
    if importlib.util.find_spec("litellm_proxy_extras") is None:
        world_needs.absent("LiteLLM's server: .ci/world has it, or pip install 'litellm[proxy]'")
    file, log, port = folder / "config.yaml", folder / "litellm.log", free_port()
    file.write_text(config)
    command = [sys.executable, "-c", "from litellm import run_server; run_server()"]
    command += ["--config", str(file), "--host", "127.0.0.1", "--port", str(port)]
    ours = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": KEY, "PYTHONPATH": SOURCE}
    with log.open("w") as out:
        server = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **ours, **env}, stdout=out, stderr=out
        )
    url = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + START_SECONDS
        while not _answers(url):
            if server.poll() is not None or time.monotonic() > until:
                raise RuntimeError(log.read_text()[-2_000:])
            time.sleep(0.2)
        yield url
    finally:
        server.terminate()
        server.wait(20)


def _answers(url: str) -> bool:
    try:
        return ask(url, "GET", "/health/liveliness")[0] == 200
    except OSError:
        return False
