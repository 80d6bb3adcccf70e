"""Growing bodies through ``trimtab proxy``, a process of its own; what arrives upstream."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from digests.chain import Chain
from digests.conversations import Found, converted
from digests.corpus import Record, Talk
from digests.kept import folder, seeded
from digests.upstream import PATHS, Answer, Upstream, calling, counted, plain, refusing, streamed

SCENES: dict[str, tuple[tuple[str, ...], tuple[tuple[Answer, ...], ...]]] = {
    "plain": ((), ((plain,),)),
    "usage": (("--preset", "balanced"), ((counted,),)),
    "refused": ((), ((plain,), (plain,), (refusing, plain))),
    "recall": (("--recall", "--target", "0.3"), ((plain,), (calling, plain))),
    "prune": (("--prune", "--prices", "claude-5m"), ((counted,), (plain,))),
    "stream": ((), ((streamed,),)),
}
"""By name: options of the proxy, and what is answered to the first, second, … request."""
TURNS = 10
Address = tuple[str, int]
_TOKEN = {"x-trimtab-token": "same-bytes"}
_LISTENING = re.compile(rb"listening on http://([0-9.]+):(\d+)")


def scene(name: str, format: str, found: Sequence[Record], src: str) -> Found:
    """Two conversations turn about through one proxy."""
    options, answers = SCENES[name]
    talks = [talk for record in found if (talk := converted(record, format)) is not None]
    chains = [Chain() for _ in talks]
    heads = [Chain() for _ in talks]
    upstream, sent = Upstream(format), 0
    try:
        with folder() as place, proxy(upstream.url, options, place, src) as address:
            for count in range(TURNS):
                for talk, chain, head in zip(talks, chains, heads, strict=True):
                    ends = talk.some_ends(TURNS)
                    if count >= len(ends):
                        continue
                    upstream.plan[:] = answers[sent % len(answers)]
                    upstream.got.clear()
                    sent += 1
                    stream, tools = name == "stream", name in ("recall", "prune")
                    data = body_of(talk, ends[count], stream=stream, tools=tools)
                    status, told, body = asked(address, path_of(format, stream=stream), data)
                    for path, received in upstream.got:
                        chain.add(path, received)
                    chain.add(status, body)
                    head.add(told)
                    settled(address)
    finally:
        upstream.close()
    for record, chain, head in zip(found, chains, heads, strict=False):
        yield f"proxy/{name}/{format}/{record.name}", chain.told()
        yield f"proxy-header/{name}/{format}/{record.name}", head.told()


def body_of(talk: Talk, end: int, *, stream: bool, tools: bool) -> bytes:
    """The first ``end`` messages as a client sends them; ``tools``: it offers one in any case."""
    body = talk.body(end)
    if talk.format not in ("gemini", "bedrock"):
        body = {"model": "a-model", **body}
        body.pop("stream", None)
        if stream:
            body["stream"] = True
    if talk.format == "anthropic":
        body.setdefault("max_tokens", 1_000)
    if tools:
        body.setdefault("toolConfig" if talk.format == "bedrock" else "tools", _tools(talk.format))
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _tools(format: str) -> object:
    """One tool, as recall is only offered beside others."""
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    plain_ = {"name": "Read", "description": "Reads a file."}
    if format == "anthropic":
        return [{**plain_, "input_schema": schema}]
    if format == "bedrock":
        return {"tools": [{"toolSpec": {**plain_, "inputSchema": {"json": schema}}}]}
    if format == "gemini":
        return [{"functionDeclarations": [{**plain_, "parameters": schema}]}]
    whole = {**plain_, "parameters": schema}
    if format == "openai-responses":
        return [{"type": "function", **whole}]
    return [{"type": "function", "function": whole}]


def path_of(format: str, *, stream: bool) -> str:
    """Where a request goes."""
    path = PATHS[format]
    if stream and format == "gemini":
        return path.replace(":generateContent", ":streamGenerateContent?alt=sse")
    return f"{path}-stream" if stream and format == "bedrock" else path


def asked(address: Address, path: str, data: bytes) -> tuple[int, str, bytes]:
    """Status, ``x-trimtab`` and body of an answer."""
    connection = http.client.HTTPConnection(*address, timeout=120)
    try:
        headers = {"content-type": "application/json", "x-api-key": "k", "authorization": "k"}
        headers |= _TOKEN
        connection.request("POST", path, body=data, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.getheader("x-trimtab") or "", answer.read()
    finally:
        connection.close()


def settled(address: Address) -> None:
    """Wait until what an answer cost was learned from."""
    for _ in range(1_000):
        connection = http.client.HTTPConnection(*address, timeout=30)
        try:
            connection.request("GET", "/metrics", headers=_TOKEN)
            text = connection.getresponse().read()
        finally:
            connection.close()
        if re.search(rb"^trimtab_in_flight 0", text, re.MULTILINE):
            return
        time.sleep(0.01)
    raise RuntimeError("the proxy does not say that its requests are done")


@contextmanager
def proxy(url: str, options: Sequence[str], place: Path, src: str) -> Iterator[Address]:
    """A proxy with the package of ``src``, and nothing of this machine's settings."""
    store = seeded(place / "proxy.db", "upstream/local")
    kept = {key: value for key, value in os.environ.items() if not key.startswith("TRIMTAB_")}
    env = {**kept, "PYTHONPATH": src, "HOME": str(place), "XDG_CONFIG_HOME": str(place)}
    env["TRIMTAB_PROXY_TOKEN"] = _TOKEN["x-trimtab-token"]
    command = [sys.executable, "-m", "trimtab", "proxy", "--listen", "127.0.0.1:0"]
    command += ["--upstream", url, "--window", "16384", "--store", store, *options]
    with open(place / "log", "wb") as log:
        process = subprocess.Popen(command, cwd=place, env=env, stdout=log, stderr=log)
    try:
        for _ in range(600):
            text = (place / "log").read_bytes()
            if found := _LISTENING.search(text):
                break
            if process.poll() is not None:
                raise RuntimeError(text.decode())
            time.sleep(0.05)
        else:
            raise RuntimeError("the proxy does not listen")
        yield found[1].decode(), int(found[2])
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
