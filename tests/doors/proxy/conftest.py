"""Both HTTP parsers that uvicorn takes, and both event loops."""

from __future__ import annotations

import importlib
import sys

import pytest
import world_needs

PARSERS = {"h11": "H11Protocol", "httptools": "HttpToolsProtocol"}


@pytest.fixture(params=PARSERS)
def parser(request, monkeypatch):
    """Both parsers that uvicorn takes."""
    world_needs.module(request.param, "dev")
    module = importlib.import_module(f"uvicorn.protocols.http.{request.param}_impl")
    found = getattr(module, PARSERS[request.param])
    monkeypatch.setattr("uvicorn.protocols.http.auto.AutoHTTPProtocol", found)


@pytest.fixture(params=["asyncio", "uvloop"])
def loop(request, monkeypatch):
    """Both event loops that the proxy runs on."""
    if request.param == "asyncio":
        monkeypatch.setitem(sys.modules, "uvloop", None)
    else:
        monkeypatch.delitem(sys.modules, "uvloop")
        world_needs.module("uvloop", "dev")
