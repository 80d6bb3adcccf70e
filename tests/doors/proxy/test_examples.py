"""What examples/proxy ships: a settings file, a systemd unit, a container with compose."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from argparse import ArgumentParser
from pathlib import Path

import pytest
from proxies import ask, proxied

from trimtab.cli.proxy import add_proxy
from trimtab.proxy import ProxySettings, load, server

FOLDER = Path(__file__).resolve().parents[3] / "examples/proxy"
UNIT = (FOLDER / "trimtab-proxy.service").read_text(encoding="utf-8")
CONTAINER = (FOLDER / "Containerfile").read_text(encoding="utf-8")
COMPOSE = (FOLDER / "compose.yaml").read_text(encoding="utf-8")


def unit(key: str) -> str:
    [found] = re.findall(rf"(?m)^{key}=(.*)$", UNIT)
    return found


@pytest.mark.skipif(server.WINDOWS, reason="no descriptors to count")
def test_the_systemd_unit_lets_the_proxy_take_ten_thousand_clients(monkeypatch):
    """With the 1,024 descriptors that systemd gives by itself it would take 341."""
    import resource

    limit = int(unit("LimitNOFILE"))
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit, limit))
    assert server._third_of_descriptors() >= 10_000


def test_the_systemd_unit_waits_until_running_answers_have_ended():
    assert int(unit("TimeoutStopSec")) > load(FOLDER / "proxy.toml").drain_seconds


@pytest.mark.parametrize(
    "words",
    [shlex.split(unit("ExecStart")),
     json.loads(re.findall(r"(?m)^ENTRYPOINT (.*)$", CONTAINER)[0]),
     [word.strip(' "') for word in re.findall(r"entrypoint: \[(.*)\]", COMPOSE)[0].split(",")]],
    ids=["systemd", "container", "compose"],
)  # fmt: skip
def test_the_commands_that_the_files_run_have_options_that_exist(words):
    program, command, *options = words
    assert (program.rpartition("/")[2], command) == ("trimtab", "proxy")
    parser = ArgumentParser()
    add_proxy(parser)
    parser.parse_args(options)


def test_the_container_s_health_check_asks_for_a_page_that_there_is():
    [path] = re.findall(r"http://127\.0\.0\.1:4141(/[^']*)", CONTAINER)
    with proxied("http://127.0.0.1:9") as running:
        assert ask(running.url, "GET", path, bring_token=False)[0] == 200


def test_the_container_s_command_for_podman_keeps_the_health_check():
    """In podman's own format it is left out, with a warning."""
    assert "HEALTHCHECK" in CONTAINER
    assert re.search(
        r"(?m)^# .*podman build --format docker -f examples/proxy/Containerfile", CONTAINER
    )


def test_the_container_installs_extras_that_there_are():
    project = tomllib.loads((FOLDER.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    [extras] = re.findall(r"/src\[([^\]]*)\]", CONTAINER)
    assert set(extras.split(",")) <= set(project["project"]["optional-dependencies"])


def test_the_settings_file_says_the_defaults_where_it_says_nothing_of_its_own():
    given, default = load(FOLDER / "proxy.toml"), ProxySettings()
    for name in ("max_bytes", "read_seconds", "drain_seconds"):
        assert getattr(given, name) == getattr(default, name), name
