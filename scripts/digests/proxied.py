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
    "recall": (("--recall",), ((plain,), (calling, plain))),
    "prune": (("--prune", "--prices", "claude-5m"), ((counted,), (plain,))),
    "stream": ((), ((streamed,),)),
}
"""By name: options of the proxy, and what is answered to the first, second, … request."""
TURNS = 10
_LISTENING = re.compile(rb"listening on http://([0-9.]+):(\d+)")


def scene(name: str, format: str, found: Sequence[Record], src: str) -> Found:
    """Two conversations turn about through one proxy."""
    options, answers = SCENES[name]
    talks = [talk for record in found if (talk := converted(record, format)) is not None]
    chains = [Chain() for _ in talks]
    heads = [Chain() for _ in talks]
    upstream, sent = Upstream(format), 0
    try:
        with folder() as place, _proxy(upstream.url, options, place, src) as (host, port):
            for count in range(TURNS):
                for talk, chain, head in zip(talks, chains, heads, strict=True):
                    ends = talk.some_ends(TURNS)
                    if count >= len(ends):
                        continue
                    upstream.plan[:] = answers[sent % len(answers)]
                    upstream.got.clear()
                    sent += 1
                    data = _body(talk, ends[count], format, name)
                    status, told, body = _ask(host, port, _path(format, name), data)
                    for path, received in upstream.got:
                        chain.add(path, received)
                    chain.add(status, body)
                    head.add(told)
                    _settled(host, port)
    finally:
        upstream.close()
    for record, chain, head in zip(found, chains, heads, strict=False):
        yield f"proxy/{name}/{format}/{record.name}", chain.told()
        yield f"proxy-header/{name}/{format}/{record.name}", head.told()


def _body(talk: Talk, end: int, format: str, name: str) -> bytes:
    body = talk.body(end)
    if format != "gemini":
        body = {"model": "a-model", **body}
        body.pop("stream", None)
    if format == "anthropic":
        body.setdefault("max_tokens", 1_000)
    if "tools" not in body and name in ("recall", "prune"):
        body["tools"] = _tools(format)
    if name == "stream" and format != "gemini":
        body["stream"] = True
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _tools(format: str) -> list[object]:
    """One tool, as recall is only offered beside others."""
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    plain_ = {"name": "Read", "description": "Reads a file."}
    if format == "anthropic":
        return [{**plain_, "input_schema": schema}]
    if format == "gemini":
        return [{"functionDeclarations": [{**plain_, "parameters": schema}]}]
    whole = {**plain_, "parameters": schema}
    if format == "openai-responses":
        return [{"type": "function", **whole}]
    return [{"type": "function", "function": whole}]


def _path(format: str, name: str) -> str:
    path = PATHS[format]
    if name == "stream" and format == "gemini":
        return path.replace(":generateContent", ":streamGenerateContent?alt=sse")
    return path


def _ask(host: str, port: int, path: str, data: bytes) -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection(host, port, timeout=120)
    try:
        headers = {"content-type": "application/json", "x-api-key": "k", "authorization": "k"}
        connection.request("POST", path, body=data, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.getheader("x-trimtab") or "", answer.read()
    finally:
        connection.close()


def _settled(host: str, port: int) -> None:
    """Wait until what an answer cost was learned from."""
    for _ in range(100):
        connection = http.client.HTTPConnection(host, port, timeout=30)
        try:
            connection.request("GET", "/metrics")
            text = connection.getresponse().read()
        finally:
            connection.close()
        if re.search(rb"^trimtab_in_flight 0", text, re.MULTILINE):
            return
        time.sleep(0.01)


@contextmanager
def _proxy(url: str, options: Sequence[str], place: Path, src: str) -> Iterator[tuple[str, int]]:
    """A proxy with the package of ``src``, and nothing of this machine's settings."""
    store = seeded(place / "proxy.db", "upstream/local")
    kept = {key: value for key, value in os.environ.items() if not key.startswith("TRIMTAB_")}
    env = {**kept, "PYTHONPATH": src, "HOME": str(place), "XDG_CONFIG_HOME": str(place)}
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
