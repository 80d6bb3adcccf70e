"""``trimtab dashboard``: the address of the proxy that runs, as it printed it when it began."""

from __future__ import annotations

import stat

import pytest
from proxies import proxied

from trimtab.cli import main, state_files
from trimtab.proxy.agents import launch
from trimtab_lab.testing import StrictProvider


@pytest.fixture(autouse=True)
def _state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_the_newest_proxy_that_still_runs_is_named_with_its_token(tmp_path, capsys, monkeypatch):
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: bool(opened.append(address)) or True)
    with StrictProvider() as provider, proxied(provider.url) as server:
        state_files.keep_dashboard(server.dashboard)
        state_files.keep_dashboard("http://127.0.0.1:1/_trimtab/?token=of-one-that-has-ended")
        assert main(["dashboard"]) == 0
        assert capsys.readouterr().out == f"{server.dashboard}\n"
        assert opened == []
        assert main(["dashboard", "--open"]) == 0
        assert opened == [server.dashboard]
    assert stat.S_IMODE((tmp_path / "trimtab" / "dashboards").stat().st_mode) == 0o600


def test_where_no_proxy_runs_any_more_the_next_step_is_named(capsys):
    state_files.keep_dashboard("http://127.0.0.1:1/_trimtab/?token=of-one-that-has-ended")
    assert main(["dashboard"]) == 6
    assert "start one with trimtab run or trimtab proxy" in capsys.readouterr().err


def test_the_proxy_of_an_agent_is_found_while_it_runs(tmp_path, monkeypatch, capsys):
    found: list[int] = []
    monkeypatch.setattr(launch, "_wait", lambda *_: found.append(main(["dashboard"])) or 0)
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    assert main(["run", "--window", "100k", "claude"]) == 0
    assert found == [0]
    said = capsys.readouterr()
    assert f"dashboard {said.out.strip()}" in said.err
