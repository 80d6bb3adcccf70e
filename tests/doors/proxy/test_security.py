"""What must never happen: keys or bodies in logs and stores, foreign pages, foreign tenants.

Knows headers and what an attacker controls.
"""

from __future__ import annotations

import json
import logging
import re
import sqlite3
from urllib.parse import urlencode

import pytest
from proxies import ask, proxied, settled
from proxy_story import WINDOW, answers, turn_by_turn
from raw_provider import raw_provider, whole

from trimtab.errors import InvalidSetting
from trimtab.proxy import Proxy, ProxySettings, Upstream
from trimtab.session import learned_limits
from trimtab_lab.testing import StrictProvider

HOME = "/_trimtab/"
JSON = {"content-type": "application/json"}
CHAT = json.dumps({"model": "gpt-5.1", "messages": [{"role": "user", "content": "Hi."}]})
KEY = "sk-ant-very-secret-0123456789"


@pytest.mark.parametrize("texts", [False, None])
def test_no_key_and_no_body_reaches_a_log_a_metric_or_a_store(texts, tmp_path, caplog):
    """But the first prompt, which is a session's title where the dashboard may show texts."""
    body = {
        "model": "claude-opus-5-5", "max_tokens": 100,
        "messages": [{"role": "user", "content": "the word is xylophone"}],
    }  # fmt: skip
    store = tmp_path / "store.db"
    caplog.set_level(logging.DEBUG)
    with (
        StrictProvider(answers, window=WINDOW) as provider,
        proxied(
            provider.url,
            window=WINDOW,
            store=f"sqlite:///{store}",
            tenants="key",
            dashboard_texts=texts,
        ) as server,
    ):
        keyed = {**JSON, "x-api-key": KEY, "authorization": f"Bearer {KEY}"}
        for path in ("/v1/messages", f"/v1/messages?key={KEY}", "/v1/models"):
            ask(server.url, "POST", path, json.dumps(body), keyed)
        ask(server.url, "POST", "/v1/messages", "{" + KEY, keyed)
        turn_by_turn(server.url, 24)
        _, _, metrics = ask(server.url, "GET", "/metrics", headers={"x-trimtab-token": "x"})
        settled(server)
        served = server.proxy.tenants._served.values()
        learned = repr([dict(learned_limits(one.session)._facts) for one in served])
        sessions = repr(server.proxy.addons.records.activity.sessions)
    assert "provider generate" in caplog.text
    assert ("xylophone" in sessions) == (texts is None)
    for told in (caplog.text, metrics.decode(), learned, sessions):
        assert KEY not in told
        assert "xylophone" not in told or told is sessions
        assert "value_7919" not in told
    data = store.read_bytes()
    assert KEY.encode() not in data
    with sqlite3.connect(store) as db:
        tables = [
            name for (name,) in db.execute("select name from sqlite_master where type = 'table'")
        ]
        assert tables
        for table in tables:
            if not table.startswith("sqlite_"):
                names = [row[1] for row in db.execute(f"pragma table_info({table})")]
                keys = [n for n in names if n in ("tenant", "name", "handle", "conversation")]
                for row in db.execute(f"select {', '.join(keys) or '1'} from {table}"):
                    assert "xylophone" not in str(row)


def test_the_name_of_a_foreign_host_is_refused_so_that_rebinding_leads_nowhere():
    with StrictProvider() as provider, proxied(provider.url, window=9_000) as server:
        for path in (HOME, "/metrics", "/v1/chat/completions", "/v1/models"):
            for host in ("evil.example", "evil.example:4141", "127.0.0.1.evil.example", ""):
                status, _, body = ask(server.url, "GET", path, headers={"host": host})
                assert status == 403, (path, host)
                assert b"hosts" in body
        for host in ("127.0.0.1:1", "localhost", "[::1]:4141"):
            assert ask(server.url, "GET", HOME, headers={"host": host})[0] == 200
        assert provider.requests == []
    with proxied(provider_url(), hosts=("box.local",)) as server:
        assert ask(server.url, "GET", HOME, headers={"host": "box.local:4141"})[0] == 200


def provider_url() -> str:
    return "http://127.0.0.1:9"


def test_beyond_loopback_a_token_is_asked_for():
    with pytest.raises(InvalidSetting, match="TRIMTAB_PROXY_TOKEN"):
        ProxySettings(listen="0.0.0.0:0").checked()
    with proxied(provider_url(), listen="0.0.0.0:0", token="open sesame") as server:
        url = f"http://127.0.0.1:{server.port}"
        status, _, body = ask(url, "GET", HOME, bring_token=False)
        assert status == 401
        assert b"asks for a token" in body
        assert ask(url, "GET", "/metrics", bring_token=False)[0] == 401
        assert ask(url, "GET", f"{HOME}health")[0] == 200
        assert ask(url, "GET", "/metrics", headers={"x-trimtab-token": "open sesame"})[0] == 200
        form = {"content-type": "application/x-www-form-urlencoded"}
        assert ask(url, "POST", f"{HOME}token", urlencode({"token": "open"}), form)[0] == 401
        said = ask(url, "POST", f"{HOME}token", urlencode({"token": "open sesame"}), form)
        assert said[0] == 303
        cookie = said[1]["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert "sesame" not in cookie
        assert ask(url, "GET", HOME, headers={"cookie": cookie.partition(";")[0]},
                   bring_token=False)[0] == 200  # fmt: skip
        guessed = {"cookie": "trimtab=guess"}
        assert ask(url, "GET", HOME, headers=guessed, bring_token=False)[0] == 401


def test_requests_that_the_proxy_signs_need_its_token_beyond_loopback_and_no_foreign_page():
    upstream = (Upstream("bedrock", provider_url(), sign="aws", region="us-east-1"),)
    with proxied("", upstreams=upstream, listen="0.0.0.0:0", token="t") as server:
        url = f"http://127.0.0.1:{server.port}"
        assert ask(url, "POST", "/model/m/converse", "{}", JSON)[0] == 401
    with proxied("", upstreams=upstream) as server:
        foreign = {**JSON, "origin": "http://evil.example"}
        assert ask(server.base, "POST", "/model/m/converse", "{}", foreign)[0] == 403
        assert ask(server.url, "POST", "/model/m/converse", "{}", JSON)[0] == 403


def test_another_user_of_this_machine_sees_and_undoes_nothing():
    """Loopback is everybody's: the token is made at the start and stands in the printed address."""
    with StrictProvider() as provider, proxied(provider.url, window=9_000) as server:
        form = {"content-type": "application/x-www-form-urlencoded"}
        for method, path in (("GET", HOME), ("GET", "/metrics"), ("GET", f"{HOME}s/x"),
                             ("POST", f"{HOME}undo"), ("POST", f"{HOME}pin")):  # fmt: skip
            body = "session=x&handle=y" if method == "POST" else None
            assert ask(server.url, method, path, body, form, bring_token=False)[0] == 401
        assert ask(server.url, "GET", f"{HOME}ready", bring_token=False)[0] == 200
        path = server.dashboard.removeprefix(server.url)
        status, headers, _ = ask(server.url, "GET", path, bring_token=False)
        assert (status, headers["location"]) == (303, HOME)
        cookie = {"cookie": headers["set-cookie"].partition(";")[0]}
        assert ask(server.url, "GET", HOME, headers=cookie, bring_token=False)[0] == 200
        wrong = f"{HOME}?token=guess"
        assert ask(server.url, "GET", wrong, bring_token=False)[0] == 401


def test_wrong_tokens_are_answered_ever_more_slowly(monkeypatch):
    waited = []

    async def slept(seconds):
        waited.append(seconds)

    with proxied(provider_url(), require_token=True) as server:
        monkeypatch.setattr("trimtab.proxy.callers.access.pause", slept)
        for number in range(40):
            wrong = {"x-trimtab-token": f"guess {number}"}
            assert ask(server.url, "GET", HOME, headers=wrong)[0] == 401
            assert ask(server.url, "GET", f"/token/{number}/v1/models")[0] == 401
        before = len(waited)
        for name in ("x-api-key", "authorization"):  # where a token may stand, too
            for path in (HOME, "/metrics", "/v1/models"):
                guess = {name: "Bearer guess"}
                assert ask(server.url, "GET", path, headers=guess, bring_token=False)[0] == 401
        assert waited[before:].count(5.0) == 6
        monkeypatch.undo()
    mine = [seconds for seconds in waited if seconds >= 0.2]
    assert mine[:3] == pytest.approx([0.2, 0.4, 0.6])
    assert mine[-1] == 5.0


@pytest.mark.parametrize("where", ["header", "path", "bearer", "api key"])
def test_a_token_lets_requests_through_and_never_reaches_the_provider(where):
    with StrictProvider() as provider, proxied(provider.url, require_token=True) as server:
        token = server.proxy.access.token
        assert ask(server.url, "POST", "/v1/chat/completions", CHAT, JSON)[0] == 401
        headers = {**JSON, "x-other": "kept"}
        url = server.base if where == "path" else server.url
        if where == "header":
            headers |= {"x-trimtab-token": token, "authorization": "Bearer of-the-provider"}
        if where == "bearer":
            headers["authorization"] = f"Bearer {token}"
        if where == "api key":
            headers["x-api-key"] = token
        assert ask(url, "POST", f"/v1/chat/completions?a=1&k={token}", CHAT, headers)[0] == 200
        (record,) = provider.requests
    assert token not in repr(record)
    assert record.headers["x-other"] == "kept"
    assert ("authorization" in record.headers) is (where == "header")


MISPLACED = (
    "/to/provider/token/{}/v1/models", "/token/{0}/token/{0}/v1/models", "//token/{}/v1/models",
    "/Token/%74{1}/v1/models",
)  # fmt: skip


@pytest.mark.parametrize("path", MISPLACED)
def test_a_token_in_the_wrong_place_of_a_path_never_reaches_the_provider(path):
    with (
        raw_provider(lambda talk, _: talk.say(whole(b"{}"))) as provider,
        proxied(provider.url, token="the-token") as server,
    ):
        path = path.format("the-token", "he-token")
        assert ask(server.url, "GET", path)[0] == 400
        assert not provider.requests
        assert ask(server.url, "GET", "/v1/models?key=%74he%2Dtoken&a=1")[0] == 200
        assert provider.requests[0].head.startswith(b"GET /v1/models?a=1 HTTP")


@pytest.mark.parametrize("way", ["header", "path", "bearer"])
def test_the_token_of_clients_lets_requests_pass_and_opens_no_page(way, monkeypatch):
    asked = {"require_token": True, "token": "for-admins", "client_token": "for-clients"}
    with StrictProvider() as provider, proxied(provider.url, **asked) as server:
        seen, respond = [], provider.respond

        def noting(method, path, query, headers, body):
            seen.append((path, dict(headers)))
            return respond(method, path, query, headers, body)

        monkeypatch.setattr(provider, "respond", noting)
        body = json.dumps({"model": "gpt-5.1", "messages": [{"role": "user", "content": "Hi."}]})
        headers = {"content-type": "application/json"}
        prefix = "/token/for-clients" if way == "path" else ""
        if way == "header":
            headers |= {"x-trimtab-token": "for-clients", "authorization": "Bearer sk-mine"}
        elif way == "bearer":
            headers["authorization"] = "Bearer for-clients"
        path = f"{prefix}/v1/chat/completions"
        assert ask(server.url, "POST", path, body.encode(), headers)[0] == 200
        (sent,) = seen
        assert "for-clients" not in str(sent)
        for page in ("/_trimtab/", "/_trimtab/spend", "/_trimtab/requests", "/metrics"):
            status, _, shown = ask(server.url, "GET", page, None, headers, bring_token=False)
            assert status == 401, page
            assert b"Hi." not in shown
        entered = ask(server.url, "GET", "/_trimtab/?token=for-clients", bring_token=False)
        assert entered[0] == 401
        own = {"x-trimtab-token": "for-admins"}
        assert ask(server.url, "GET", "/_trimtab/", None, own)[0] == 200


def test_the_token_of_clients_must_be_another_one():
    with pytest.raises(InvalidSetting, match="client_token is the token"):
        ProxySettings(token="same", client_token="same").checked()


def test_beyond_loopback_every_request_has_to_bring_the_token_unless_that_is_switched_off():
    assert ProxySettings(listen="0.0.0.0:0").asks_for_token
    assert not ProxySettings(listen="0.0.0.0:0", require_token=False).asks_for_token
    assert not ProxySettings().asks_for_token


def test_who_brings_no_key_of_its_own_is_known_to_nobody_else():
    """An access key id is no secret: without our token nothing is remembered for it."""
    scope = "AKIAVICTIM/20261122/us-east-1/bedrock/aws4_request"
    signed = {**JSON, "authorization": f"AWS4-HMAC-SHA256 Credential={scope}, Signature=forged"}
    with StrictProvider() as provider, proxied(provider.url, tenants="key") as server:
        for headers in (signed, JSON):
            assert ask(server.url, "POST", "/v1/chat/completions", CHAT, headers)[0] == 200
        settled(server)
        assert not server.proxy.tenants._served
        assert ask(server.base, "POST", "/v1/chat/completions", CHAT, signed)[0] == 200
        assert [tenant for _, tenant in server.proxy.tenants._served] == ["token"]


def test_a_form_from_elsewhere_changes_nothing():
    with (
        StrictProvider(answers, window=WINDOW) as provider,
        proxied(provider.url, window=WINDOW) as server,
    ):
        turn_by_turn(server.url, 24)
        session = next(iter(settled(server).proxy.addons.records.activity.sessions.values()))
        handle = next(iter(session.edits))
        page = f"{HOME}s/{session.id}/e/{handle}"
        _, _, body = ask(server.url, "GET", page)
        token = re.search(r'name="token" value="([0-9a-f]{64})"', body.decode())
        assert token
        form = {"content-type": "application/x-www-form-urlencoded"}
        good = {"token": token[1], "session": session.id, "handle": handle}
        for fields, headers in (
            ({**good, "token": "0" * 64}, form),
            ({**good, "token": ""}, form),
            (good, {**form, "origin": "http://evil.example"}),
            (good, {**form, "sec-fetch-site": "cross-site"}),
            (good, {**form, "sec-fetch-site": "same-site"}),
        ):
            status, _, _ = ask(server.url, "POST", f"{HOME}undo", urlencode(fields), headers)
            assert status == 403
        assert ask(server.url, "GET", f"{HOME}undo?{urlencode(good)}")[0] == 404
        before = len(provider.requests)
        status, said, _ = ask(server.url, "POST", f"{HOME}undo", urlencode(good), form)
        assert (status, said["location"]) == (303, f"{page}?done=undo")
        assert len(provider.requests) == before


@pytest.mark.parametrize("origin", ["http://[::1", "null", "http://[x]:9", ""])
def test_an_origin_that_is_none_is_another_site_and_no_fault_of_ours(origin):
    with proxied("http://127.0.0.1:1") as server:
        assert ask(server.url, "POST", "/_trimtab/undo", b"", {"origin": origin})[0] == 403


def test_settings_read_again_do_not_open_the_pages_to_whom_we_still_listen():
    upstreams = (Upstream("provider", "http://127.0.0.1:1"),)
    proxy = Proxy(ProxySettings(listen="0.0.0.0:0", token="long enough", upstreams=upstreams))
    with pytest.raises(InvalidSetting):
        proxy.reload(ProxySettings(upstreams=upstreams))
    proxy.reload(ProxySettings(upstreams=upstreams, token="another"))
    assert not proxy.access.authenticated({})
    assert not proxy.settings.one_tenant


def test_the_pages_carry_headers_that_forbid_foreign_scripts_frames_and_sniffing():
    with proxied(provider_url()) as server:
        _, headers, body = ask(server.url, "GET", HOME)
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert re.search(r"script-src 'sha256-[\w+/=]+';", policy)
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert body.count(b"<script") == 1
    assert not re.findall(rb'(?:src|href)="(?!/_trimtab/)', body)


def test_another_tenant_s_handle_is_refused(tmp_path):
    store = f"sqlite:///{tmp_path / 'store.db'}"
    with (
        StrictProvider(answers, window=WINDOW) as provider,
        proxied(provider.url, window=WINDOW, tenants="key", store=store) as server,
    ):
        turn_by_turn(server.base, 24)  # with the proxy's token, and no key
        activity = settled(server).proxy.addons.records.activity
        session = next(iter(activity.sessions.values()))
        tenants, upstream = server.proxy.tenants, server.proxy.settings.upstreams[0]
        handle = next(iter(session.edits))
        assert tenants.served(upstream, session.tenant).session.recall(handle)
        other = tenants.tenant({"x-api-key": KEY}, "", upstream)
        assert other != session.tenant
        with pytest.raises(KeyError):
            tenants.served(upstream, other).session.recall(handle)
