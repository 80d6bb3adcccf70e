"""Both HTTP parsers that uvicorn takes."""

from __future__ import annotations

import importlib

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
