"""LiteLLM's own proxy server with our hook in it.

Knows its config file and what its clients see; sessions outgrow the window three times.  Skipped
where ``litellm[proxy]`` is not installed.
"""

from __future__ import annotations

import json
import re
import statistics
import time
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import agents_world
import pytest
from litellm_server import KEY, litellm_server
from proxies import ask
from store_urls import FAR, store_url

from trimtab import Session, stores
from trimtab.errors import UnknownHandle
from trimtab_lab.testing import Answer, Call, StrictProvider

pytestmark = pytest.mark.world
WINDOW, TURNS = 12_000, 40
PATH = {"type": "object", "properties": {"path": {"type": "string"}}}
JSON = {"Content-Type": "application/json"}
HOOK = "litellm_settings: {callbacks: trimtab.clients.litellm.proxy_hook}"
HANDLE = re.compile(r'recall\(\\*"(r[a-z2-7]{10})')
KINDS = ("chat", "messages", "responses")


def lines(turn: int) -> str:
    return "".join(f"src/m{turn}.py:{n}: token {n * 7919 + turn} alpha\n" for n in range(60))


def gateway(providers: dict[str, StrictProvider], folder: Path, more: str, **env: str):
    """LiteLLM's server, with a model for each provider that is called as it; its address."""
    models = "".join(
        f"- model_name: {name}\n  litellm_params: {{model: {model_of(name)}, api_key: x,"
        f" api_base: {provider.url}{'' if 'messages' in name else '/v1'}}}\n"
        for name, provider in providers.items()
    )
    config = (
        f"model_list:\n{models}"
        f"router_settings: {{retry_policy: {{BadRequestErrorRetries: 2}}}}\n{more}\n"
    )
    return litellm_server(folder, config, **env)


def model_of(name: str) -> str:
    return "anthropic/claude-sonnet-4-5" if "messages" in name else "openai/gpt-5.1"


def loop(turns: int = TURNS) -> list[Any]:
    called = [Answer("", [Call("read", {"path": f"src/m{n}.py"})]) for n in range(turns)]
    return [*called, "done"]


class World(NamedTuple):
    url: str
    providers: dict[str, StrictProvider]
    store: str = ""


@contextmanager
def world(names: list[str], folder: Path, more: str, window: int = WINDOW, **env: str):
    with ExitStack() as stack:
        providers = {
            name: stack.enter_context(StrictProvider(loop(), window=window)) for name in names
        }
        yield World(stack.enter_context(gateway(providers, folder, more, **env)), providers,
                    env.get("TRIMTAB_STORE", ""))  # fmt: skip


@pytest.fixture(scope="module")
def hooked(tmp_path_factory):
    """LiteLLM's server with our hook, which is told the window."""
    folder = tmp_path_factory.mktemp("hooked")
    store = f"sqlite:///{folder}/s.db"
    names = [f"{kind}-{way}" for kind in KINDS for way in ("plain", "stream")]
    with world(names, folder, HOOK, TRIMTAB_WINDOW=str(WINDOW), TRIMTAB_STORE=store) as made:
        yield made


@pytest.fixture(scope="module")
def untold(tmp_path_factory):
    """The same, with models that take less than their names say."""
    names = ["chat-learns", "messages-learns"]
    with world(names, tmp_path_factory.mktemp("untold"), HOOK) as made:
        yield made


class Client:
    """An agent that reads a file in each turn, in one of three APIs.  ``seconds``: of each call."""

    def __init__(self, url: str | list[str], kind: str, model: str, key: str = KEY) -> None:
        self.urls = cycle([url] if isinstance(url, str) else url)
        self.kind, self.model = kind, model
        self.headers = {**JSON, "Authorization": f"Bearer {key}"}
        self.stream = "stream" in model
        self.format: Any = "anthropic" if kind == "messages" else "openai-chat"
        self.history: list[Any] = [{"role": "user", "content": "What do the files say?"}]
        self.seconds: list[float] = []

    def run(self) -> int:
        """Turns until the model calls nothing more."""
        for turn in range(TURNS + 5):
            calls = self._turn()
            if not calls:
                return turn
            for id, _ in calls:
                self._result(id, lines(turn))
        raise AssertionError("the loop does not end")

    def times(self) -> str:
        return f"median {1000 * statistics.median(self.seconds):.0f} ms"

    def _turn(self) -> list[tuple[str, str]]:
        path, body = getattr(self, f"_{self.kind}")()
        began = time.perf_counter()
        status, _, data = ask(next(self.urls), "POST", path, json.dumps(body), self.headers)
        self.seconds.append(time.perf_counter() - began)
        assert status == 200, data[:500]
        answer = joined(self.kind, data.decode()) if self.stream else json.loads(data)
        return getattr(self, f"_take_{self.kind}")(answer)

    def _chat(self) -> tuple[str, Any]:
        tool = {"type": "function", "function": {"name": "read", "parameters": PATH}}
        return "/v1/chat/completions", {
            "model": self.model, "messages": self.history, "tools": [tool], "stream": self.stream,
        }  # fmt: skip

    def _take_chat(self, answer: Any) -> list[tuple[str, str]]:
        message = answer["choices"][0]["message"]
        calls = message.get("tool_calls") or []
        kept = {"role": "assistant", "content": message.get("content")}
        self.history.append({**kept, "tool_calls": calls} if calls else kept)
        return [(call["id"], call["function"]["arguments"]) for call in calls]

    def _messages(self) -> tuple[str, Any]:
        return "/v1/messages", {
            "model": self.model, "messages": self.history, "max_tokens": 500, "stream": self.stream,
            "tools": [{"name": "read", "input_schema": PATH}],
        }  # fmt: skip

    def _take_messages(self, answer: Any) -> list[tuple[str, str]]:
        self.history.append({"role": "assistant", "content": answer["content"]})
        return [(one["id"], "") for one in answer["content"] if one["type"] == "tool_use"]

    def _responses(self) -> tuple[str, Any]:
        return "/v1/responses", {
            "model": self.model, "input": self.history, "store": False, "stream": self.stream,
            "tools": [{"type": "function", "name": "read", "parameters": PATH}],
        }  # fmt: skip

    def _take_responses(self, answer: Any) -> list[tuple[str, str]]:
        self.history += answer["output"]
        return [(o["call_id"], "") for o in answer["output"] if o["type"] == "function_call"]

    def _result(self, id: str, text: str) -> None:
        self.history.append({
            "chat": {"role": "tool", "tool_call_id": id, "content": text},
            "messages": {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": id, "content": text}]},
            "responses": {"type": "function_call_output", "call_id": id, "output": text},
        }[self.kind])  # fmt: skip


def joined(kind: str, text: str) -> Any:
    """The answer that the events of a stream make."""
    rows = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    events = [json.loads(row) for row in rows if row != "[DONE]"]
    if kind == "responses":
        return next(e["response"] for e in events if e["type"] == "response.completed")
    if kind == "chat":
        message: dict[str, Any] = {"content": "", "tool_calls": []}
        for event in events:
            delta = event["choices"][0]["delta"] if event["choices"] else {}
            message["content"] += delta.get("content") or ""
            for call in delta.get("tool_calls") or ():
                if call["index"] == len(message["tool_calls"]):
                    message["tool_calls"].append({**call, "type": "function"})
                else:
                    function = message["tool_calls"][call["index"]]["function"]
                    function["arguments"] += call["function"]["arguments"] or ""
        return {"choices": [{"message": message}]}
    content = list[Any]()
    for event in events:
        if event["type"] == "content_block_start":
            content.append({**event["content_block"], "_json": ""})
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            content[-1]["_json"] += delta.get("partial_json", "")
            if "text" in delta:
                content[-1]["text"] += delta["text"]
    for block in content:
        written = block.pop("_json")
        if block["type"] == "tool_use":
            block["input"] = json.loads(written or "{}")
    return {"content": [block for block in content if block.get("text") != ""]}


def prefix_breaks(requests: Any) -> int:
    """How often a request did not begin with the messages of the one before."""
    breaks, before = 0, list[Any]()
    for record in requests:
        if record.status == 200:
            now = record.body.get("messages") or record.body.get("input")
            breaks += now[: len(before)] != before
            before = now
    return breaks


@pytest.mark.row("A12")
@pytest.mark.parametrize("way", ["plain", "stream"])
@pytest.mark.parametrize("kind", KINDS)
def test_with_our_hook_a_session_of_three_windows_is_never_refused(hooked, kind, way):
    provider = hooked.providers[f"{kind}-{way}"]
    client = Client(hooked.url, kind, f"{kind}-{way}")
    assert client.run() == TURNS
    assert [record.status for record in provider.requests] == [200] * (TURNS + 1)
    breaks = prefix_breaks(provider.requests)
    print(f"{client.model}: {TURNS + 1} requests, 0 refused, {breaks} cuts, {client.times()}")
    assert 1 <= breaks <= TURNS // 3


def test_what_a_virtual_key_sent_is_in_the_store_that_workers_share(hooked):
    rows = stores.open_store(hooked.store).conversations()
    assert {row.tenant for row in rows} == {"litellm/litellm_proxy_master_key"}
    assert sum(row.originals for row in rows)


class LookingUp:
    """A model that reads files, and looks up what a marker names: at once with its turn's read, or
    alone."""

    def __init__(self) -> None:
        self.asked, self.reads = list[str](), 0

    def __call__(self, record: Any) -> Any:
        history = record.body.get("messages") or record.body["input"]
        new = [one for one in HANDLE.findall(json.dumps(history)) if one not in self.asked]
        if self.reads >= TURNS * 3 // 4:
            return "done"
        read = Call("read", {"path": f"src/m{self.reads}.py"})
        if not new or "recall" not in json.dumps(record.body["tools"]) or len(self.asked) > 2:
            self.reads += 1
            return Answer("", [read])
        self.asked.append(new[0])
        look, both = Call("recall", {"handle": new[0]}), len(self.asked) == 2
        self.reads += both
        return Answer("", [look, read] if both else [look])


@pytest.fixture(scope="module")
def looking_up(tmp_path_factory):
    """LiteLLM's server with our hook and look-ups, each model asking for what it misses."""
    folder = tmp_path_factory.mktemp("looking_up")
    names = [f"{kind}-{way}" for kind in KINDS for way in ("plain", "stream")]
    with world(names, folder, HOOK, TRIMTAB_WINDOW=str(WINDOW), TRIMTAB_RECALL="true",
               TRIMTAB_STORE=f"sqlite:///{folder}/s.db") as made:  # fmt: skip
        yield made


@pytest.mark.parametrize("way", ["plain", "stream"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_models_look_ups_are_answered_in_litellms_server(looking_up, kind, way, monkeypatch):
    provider, model = looking_up.providers[f"{kind}-{way}"], LookingUp()
    monkeypatch.setattr(provider, "_steps", StrictProvider(model)._steps)
    client = Client(looking_up.url, kind, f"{kind}-{way}")
    client.run()
    assert {record.status for record in provider.requests} == {200}
    assert "recall" not in json.dumps(client.history)
    results = {one for record in provider.requests for one in recalled(record.body)}
    assert len(model.asked) >= 2
    assert len(results) >= len(model.asked)
    assert all("src/m" in one for one in results)
    breaks = prefix_breaks(provider.requests)
    print(f"{client.model}: {len(provider.requests)} requests, {len(model.asked)} look-ups, "
          f"{breaks} cuts")  # fmt: skip
    assert breaks <= TURNS // 6


def recalled(body: dict[str, Any]) -> list[str]:
    """The results of the recall tool in a request."""
    ids, found = set[str](), list[str]()
    for message in body.get("messages") or body["input"]:
        content = message.get("content")
        blocks = content if isinstance(content, list) else ()
        for call in [*(message.get("tool_calls") or ()), *blocks, message]:
            name = call.get("name") or (call.get("function") or {}).get("name")
            if name == "recall":
                ids.add(call.get("call_id") or call.get("id"))
        for one in [message, *blocks]:
            if ids & {one.get("tool_call_id"), one.get("tool_use_id"), one.get("call_id")}:
                text = one.get("content") or one.get("output")
                if isinstance(text, list):
                    text = "".join(part["text"] for part in text)
                found += [text] if text else []
    return found


KEYS = ("sk-of-ada", "sk-of-bob")
AUTH = """
from litellm.proxy._types import UserAPIKeyAuth, hash_token

async def known(request, api_key):
    if api_key not in %r:
        raise ValueError("no such key")
    return UserAPIKeyAuth(api_key=hash_token(api_key))
"""


@pytest.fixture(params=FAR)
def keyed(request, tmp_path):
    """Two workers of LiteLLM's server with one store, which know two virtual keys, and their
    provider."""
    more = f"{HOOK}\ngeneral_settings: {{custom_auth: own_auth.known}}"
    with (
        store_url(request.param, tmp_path) as store,
        StrictProvider(window=WINDOW) as provider, ExitStack() as stack,
    ):  # fmt: skip
        urls = list[str]()
        for worker in ("one", "other"):
            folder = tmp_path / worker
            folder.mkdir()
            (folder / "own_auth.py").write_text(AUTH % (KEYS,))
            env = {"TRIMTAB_WINDOW": str(WINDOW), "TRIMTAB_STORE": store}
            env["TRIMTAB_RECALL"] = "true"  # so that markers name handles
            server = gateway({"chat-plain": provider}, folder, more, **env)
            urls.append(stack.enter_context(server))
        yield urls, provider, store


def test_two_workers_share_a_store_in_which_no_virtual_key_reads_anothers_originals(keyed):
    urls, provider, url = keyed
    tenants = dict[str, Any]()
    for key in KEYS:
        provider._steps = StrictProvider(loop(TURNS // 2))._steps
        before = len(provider.requests)
        client = Client(urls, "chat", "chat-plain", key)
        assert client.run() == TURNS // 2
        sent = provider.requests[before:]
        assert {record.status for record in sent} == {200}
        tenants[key] = {one for record in sent for one in HANDLE.findall(json.dumps(record.body))}
        assert tenants[key]
        breaks = prefix_breaks(sent)
        print(f"{url.partition(':')[0]}: {len(sent)} requests, 0 refused, {breaks} cuts")
        assert breaks <= TURNS // 6
    store = stores.open_store(url)
    names = {row.tenant for row in store.conversations() if row.tenant.startswith("litellm/")}
    assert len(names) == 2
    ada, bob = tenants.values()
    assert not ada & bob
    for name in names:
        session = Session(store=store, tenant=name)
        read = {one for one in ada | bob if recalls(session, one)}
        assert read in (ada, bob)


def recalls(session: Session, handle: str) -> bool:
    try:
        return "src/m" in session.recall(handle)
    except UnknownHandle:
        return False


@pytest.mark.parametrize("kind", ["chat", "messages"])
def test_a_limit_that_nobody_told_is_learned_and_no_client_sees_the_refusal(untold, kind):
    client = Client(untold.url, kind, f"{kind}-learns")
    assert client.run() == TURNS
    provider = untold.providers[client.model]
    assert 1 <= sum(record.status != 200 for record in provider.requests) <= 2


def test_a_coding_agent_behind_litellms_messages_goes_through_three_windows_unrefused(tmp_path):
    """By our estimate its prompt alone does not fit, and two answers teach the real count.

    Before: requests that cannot fit taught nothing, and 6 of 41 were refused.
    """
    agent = next(one for one in agents_world.AGENTS if one.name == "claude")
    story = agents_world.Story(agent.tool, agent.argument, 20, 400, more=dict(agent.more))
    window, key = 40_000, "sk-ant-fake"
    with StrictProvider(story, window=window, max_requests=agents_world.MAX_REQUESTS) as provider:
        config = (
            "model_list:\n- model_name: 'claude-*'\n  litellm_params: {model: anthropic/claude-*,"
            f" api_key: x, api_base: {provider.url}}}\n{HOOK}\n"
        )
        env = {"TRIMTAB_WINDOW": str(window), "TRIMTAB_COUNTER": "estimate"}
        with litellm_server(tmp_path, config, LITELLM_MASTER_KEY=key, **env) as url:
            gateway: Any = SimpleNamespace(url=url)  # where the agent thinks the provider is
            done = agents_world.run(agent, gateway, tmp_path / "home", bare=True)
    assert done.returncode == 0, done.stderr[-2_000:] + done.stdout[-2_000:]
    assert "MARMALADE" in done.stdout
    cached = sum(record.cached_tokens for record in provider.requests)
    share = cached / sum(record.tokens for record in provider.requests)
    print(f"claude: {len(provider.requests)} requests, {share:.0%} of the tokens cached")
    assert story.asked == 21
    assert {record.status for record in provider.requests} == {200}
