"""How long clients go on trying a provider that cannot be reached, bare and through the proxy.

    python bench/away.py openai anthropic claude codex …

Each client is given an address at which nobody listens.  Prints after how many seconds it gives up
and, of SDKs, how often they tried; an agent that still tries after --seconds is ended.  Agents have
to be installed: on the path, or in a folder that TRIMTAB_AGENTS names.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]

import agents_world as world  # noqa: E402
from proxies import proxied  # noqa: E402

SDKS = {"openai": "httpx", "anthropic": "httpx2"}
"""The HTTP library that each takes a client of."""
HI = [{"role": "user", "content": "Hi."}]
CODEX = """model_provider = "mine"
[model_providers.mine]
name = "mine"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
"""


@contextlib.contextmanager
def nobody() -> Iterator[str]:
    """An address at which connections are refused."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


def counted(library: str, tried: list[float]) -> Any:
    """A client of an SDK's HTTP library that notes when it sends."""
    http = importlib.import_module(library)

    class Counting(http.HTTPTransport):  # type: ignore[misc,name-defined]
        def handle_request(self, request: Any) -> Any:
            tried.append(time.monotonic())
            return super().handle_request(request)

    return http.Client(transport=Counting())


def asked(name: str, url: str) -> str:
    """One call of an SDK with its own retries."""
    tried = list[float]()
    http = counted(SDKS[name], tried)
    importlib.import_module(name)
    began = time.monotonic()
    try:
        if name == "openai":
            import openai

            chat = openai.OpenAI(api_key="k", base_url=f"{url}/v1", http_client=http)
            chat.chat.completions.create(model="gpt-5.1", messages=HI)  # type: ignore[arg-type]
        else:
            import anthropic

            claude = anthropic.Anthropic(api_key="k", base_url=url, http_client=http)
            claude.messages.create(model="claude-opus-5-5", max_tokens=9, messages=HI)  # type: ignore[arg-type]
    except Exception as error:
        return f"{len(tried)} times, {time.monotonic() - began:.1f} s ({type(error).__name__})"
    return "answered"


def sdk(name: str, bare: bool) -> str:
    """An SDK that is sent to nobody."""
    with nobody() as url:
        if bare:
            return asked(name, url)
        with proxied(url) as server:
            return asked(name, server.url)


def agent(name: str, bare: bool) -> str:
    """A coding agent that is sent to nobody."""
    [found] = [one for one in world.AGENTS if one.name == name]
    with nobody() as url, tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        (home / ".codex").mkdir(parents=True)
        (home / ".codex" / "config.toml").write_text(CODEX.format(url=url))
        began = time.monotonic()
        provider: Any = SimpleNamespace(url=url)
        try:
            done = world.run(found, provider, home, bare=bare)
        except subprocess.TimeoutExpired:
            return f"goes on after {time.monotonic() - began:.0f} s"
        return f"{time.monotonic() - began:.0f} s (exit {done.returncode})"


def main() -> None:
    """Print the table."""
    names = [*SDKS, *(one.name for one in world.AGENTS)]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("clients", nargs="*", default=names, metavar="CLIENT", choices=names)
    parser.add_argument("--seconds", type=float, default=240.0)
    args = parser.parse_args()
    world.SECONDS = args.seconds
    print("| client | bare | through trimtab |")
    print("|---|---|---|", flush=True)
    for name in args.clients:
        measure = sdk if name in SDKS else agent
        if name in SDKS:
            bare, ours = measure(name, True), measure(name, False)
        else:  # they sleep most of the time
            with ThreadPoolExecutor(2) as both:
                bare, ours = both.map(measure, (name, name), (True, False))
        print(f"| {name} | {bare} | {ours} |", flush=True)


if __name__ == "__main__":
    main()
