"""A proxy that could make nothing fit says so before it listens.

Knows settings and extras that are wrong or missing, and the extra that is only missed when a
request has to be signed.
"""

from __future__ import annotations

import io
import json
import logging
import sys
from pathlib import Path

import pytest
from proxies import ask, proxied
from retrieval_cases import articles, conversation
from shapes import FORMATS

import trimtab
from trimtab import Settings
from trimtab.cli import main
from trimtab.errors import InvalidSetting, MissingExtra
from trimtab.proxy import Proxy, ProxySettings, Upstream
from trimtab.proxy.config import log_lines
from trimtab.proxy.http import aws_signing


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"fit": {"preset": "nonsense"}}, "give a trimtab.Settings"),
        ({"store": "foo://x"}, "foo://x"),
    ],
)
def test_settings_that_every_request_would_fail_with_are_told_at_the_start(given, named):
    with pytest.raises((InvalidSetting, TypeError), match=named):
        Proxy(ProxySettings(**given))


@pytest.mark.parametrize(
    ("module", "store", "key", "extra"),
    [
        ("redis", "redis://127.0.0.1:6379/0", "", "redis"),
        ("psycopg", "postgresql://127.0.0.1/test", "", "postgresql"),
        ("cryptography.hazmat.primitives.ciphers.aead", "memory:", "secret", "encryption"),
    ],
)
def test_a_store_without_its_extra_is_told_at_the_start(monkeypatch, module, store, key, extra):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setenv("TRIMTAB_STORE_KEY", key)
    with pytest.raises(MissingExtra, match=rf"pip install 'trimtab\[{extra}\]'"):
        Proxy(ProxySettings(store=store))


def test_settings_read_again_that_cannot_work_change_nothing():
    proxy = Proxy(ProxySettings(fit=Settings(window=32_000)))
    with pytest.raises(InvalidSetting, match="nonsense"):
        proxy.reload(ProxySettings(store="nonsense:"))
    assert proxy.settings.fit == proxy.tenants.settings.fit == Settings(window=32_000)


@pytest.mark.parametrize("command", [["proxy", "--listen", "127.0.0.1:0"], ["run"]])
def test_a_preset_that_is_none_is_refused_with_those_there_are(command, capsys):
    with pytest.raises(SystemExit, match="2"):
        main([*command, "--preset", "nonsense"])
    assert "in-place" in capsys.readouterr().err


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize(
    ("options", "clients_token", "warned"),
    [
        (["--listen", "0.0.0.0:0"], "", True),
        (["--listen", "0.0.0.0:0"], "for-clients", False),
        (["--listen", "0.0.0.0:0", "--no-require-token"], "", False),
        (["--listen", "127.0.0.1:0", "--tenants", "key", "--require-token"], "", True),
        (["--listen", "127.0.0.1:0", "--require-token"], "", False),
        (["--listen", "127.0.0.1:0"], "", False),
    ],
)
def test_a_proxy_for_several_people_without_a_token_for_clients_warns_at_its_start(
    options, clients_token, warned, workers, tmp_path, monkeypatch, caplog
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("TRIMTAB_PROXY_TOKEN", "for-admins")
    monkeypatch.setenv("TRIMTAB_PROXY_CLIENT_TOKEN", clients_token)
    monkeypatch.setattr("trimtab.proxy.config.log_lines.set_up", lambda *_: None)
    monkeypatch.setattr("trimtab.proxy.Server.run", lambda _: None)
    monkeypatch.setattr("trimtab.proxy.workers.serve", lambda *_: 0)
    assert main(["proxy", *options, "--workers", workers]) == 0
    lines = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert len(lines) == warned
    assert all("set TRIMTAB_PROXY_CLIENT_TOKEN, and give clients" in line for line in lines)
    assert "for-admins" not in caplog.text


@pytest.mark.parametrize("format", FORMATS)
def test_the_proxy_s_log_has_the_figures_of_articles_without_their_titles(format, monkeypatch):
    logger, stream = logging.getLogger("trimtab"), io.StringIO()
    for name in ("handlers", "level", "propagate"):
        monkeypatch.setattr(logger, name, getattr(logger, name))
    log_lines.set_up(stream=stream)
    items = articles(4)
    for number, item in enumerate(items):
        item["title"] = f"xylophone {number}"
    body = conversation(format, [json.dumps({"articles": items})])
    fitted = trimtab.fit(body, window=int(trimtab.count_tokens(body) * 0.6), reserve=0)
    assert {edit.kind for edit in fitted.report.edits} == {"articles"}
    assert "Compression complete: saved " in stream.getvalue()
    assert "xylophone" not in stream.getvalue()


def test_a_settings_file_that_is_not_there_is_said_plainly(capsys):
    assert main(["proxy", "--config", "no-such.toml"]) == 2
    assert capsys.readouterr().err == (
        "trimtab: no-such.toml: No such file or directory: name a file that can be read\n"
    )


def test_a_key_that_is_unknown_is_reported_before_the_agent_starts(
    tmp_path: Path, monkeypatch, capfd
):
    (tmp_path / "trimtab.toml").write_text('prset = "deep"\n')
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--store", "memory:", "true"]) == 0
    first, page, last = capfd.readouterr().err.splitlines()
    assert page.startswith("trimtab: dashboard http://127.0.0.1:")
    assert "/_trimtab/?token=" in page
    assert first.startswith("trimtab: ")
    assert first.endswith("unknown key prset; did you mean preset?")
    assert last == "trimtab: no request came"


def test_a_request_to_bedrock_without_the_extra_is_answered_with_its_name(monkeypatch):
    aws_signing.forget()
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    bedrock = Upstream("bedrock", "http://127.0.0.1:9", paths=("/model/",), sign="aws")
    body = json.dumps({"messages": [{"role": "user", "content": [{"text": "Hi."}]}]})
    with proxied("", upstreams=(bedrock,)) as server:
        head = {"content-type": "application/json"}
        status, _, answer = ask(server.base, "POST", "/model/some/converse", body, head)
    assert status == 502
    assert (
        "needs botocore: pip install 'trimtab[bedrock]'" in json.loads(answer)["error"]["message"]
    )


def test_who_opens_the_address_in_a_browser_is_told_where_the_dashboard_is():
    bedrock = Upstream("bedrock", "http://127.0.0.1:9", paths=("/model/",))
    with proxied("", upstreams=(bedrock,)) as server:
        status, _, answer = ask(server.url, "GET", "/")
        assert status == 404
        assert "the dashboard is at /_trimtab/" in json.loads(answer)["error"]["message"]


def test_an_upstream_that_is_no_address_is_named_as_the_option_is(capsys):
    assert main(["proxy", "--upstream", "nonsense"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("trimtab: upstream: 'nonsense' is no http or https address: give one")
