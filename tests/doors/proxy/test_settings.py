"""Each setting of the proxy is declared once: file, environment, option and page follow from it."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

import pytest

from trimtab.cli.options import add_settings, given_settings, option
from trimtab.cli.proxy import FIT
from trimtab.config import variable
from trimtab.errors import InvalidSetting
from trimtab.proxy import ProxySettings, Upstream, load, standard
from trimtab.proxy.config.settings import KEYS, OPTIONS, PREFIX, Address, from_environment

ROOT = Path(__file__).resolve().parents[3]
SAID = {
    "listen": ("[::1]:5", Address("::1", 5)),
    "hosts": ("Box.Example", ("box.example",)),
    "key_headers": ("X-Key", ("x-key",)),
    "tenants": ("key", "key"),
    "keep_warm": ("auto", "auto"),
    "store": ("memory:", "memory:"),
    "token": ("secret", "secret"),
    "client_token": ("other", "other"),
}
"""What is said of a setting, and what becomes of it; numbers say 7, flags true."""


def said(name: str) -> tuple[str, object]:
    return SAID.get(name) or (("true", True) if OPTIONS[name].kind.is_flag else ("7", 7))


@pytest.mark.parametrize("name", OPTIONS)
def test_a_setting_is_said_by_a_variable_a_file_and_an_option(name: str, tmp_path: Path) -> None:
    text, value = said(name)
    found = from_environment({variable((name,), PREFIX): text}, ProxySettings())
    assert getattr(found, name) == value
    kind, file = OPTIONS[name].kind, tmp_path / "proxy.toml"
    quoted = text if kind.is_flag or text == "7" else f'"{text}"'
    file.write_text(f"{name} = {f'[{quoted}]' if kind.is_list else quoted}\n")
    assert getattr(load(file), name) == value
    parser = ArgumentParser()
    add_settings(parser, OPTIONS)
    words = [option((name,)), *([] if kind.is_flag else [text])]
    if kind.is_secret:
        assert option((name,)) not in parser.format_help()  # other users see what is running
        return
    assert given_settings(parser.parse_args(words), OPTIONS)[name] == value


def test_options_of_the_proxy_and_of_what_is_fitted_have_names_of_their_own() -> None:
    assert not OPTIONS.keys() & FIT.keys()


def test_the_page_says_every_key() -> None:
    page = (ROOT / "docs" / "reference" / "proxy.md").read_text(encoding="utf-8")
    for name in KEYS:
        assert name == "fit" or f"| `{name}` |" in page


def test_what_is_nearer_wins_and_what_is_fitted_adds_up(tmp_path: Path) -> None:
    file = tmp_path / "proxy.toml"
    file.write_text('read_seconds = 5\nmax_bytes = "9k"\n[fit]\npreset = "economy"\n')
    settings = from_environment({"TRIMTAB_PROXY_READ_SECONDS": "6"}, load(file))
    settings = settings.over({"read_seconds": 7.0, "fit": {"window": 9_000}})
    assert (settings.read_seconds, settings.max_bytes) == (7.0, 9_000)
    assert (settings.fit.preset, settings.fit.window) == ("economy", 9_000)


def test_an_unknown_variable_and_key_are_named_with_the_nearest(tmp_path: Path) -> None:
    file = tmp_path / "proxy.toml"
    file.write_text("read_second = 5\nupstrem = []\n[fit]\nprset = 'deep'\n")
    settings = from_environment({"TRIMTAB_PROXY_TOKN": "x"}, load(file))
    assert settings.warnings == (
        f"{file}: unknown key read_second; did you mean read_seconds?",
        f"{file}: unknown key upstrem; did you mean upstream?",
        f"{file}: unknown key fit.prset; did you mean fit.preset?",
        "the environment: unknown variable TRIMTAB_PROXY_TOKN; did you mean TRIMTAB_PROXY_TOKEN?",
    )


def test_upstreams_of_a_file_stand_before_the_providers_own(tmp_path: Path) -> None:
    file = tmp_path / "proxy.toml"
    file.write_text('[[upstream]]\nname = "a"\nurl = "http://a"\nwindow = "32k"\npaths = ["/a/"]\n')
    own = Upstream("a", "http://a", ("/a/",), window=32_000)
    assert load(file).upstreams == (own, *standard())
    file.write_text(f"standard_upstreams = false\n{file.read_text()}")
    assert load(file).upstreams == (own,)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"read_second": 3.0}, "'read_second'; did you mean read_seconds"),
        ({"max_bytes": -1}, "max_bytes=-1: give a whole number"),
        ({"tenants": "many"}, 'tenants=\'many\': give "one" or "key"'),
        ({"keep_warm_dollars": -1.0}, "keep_warm_dollars=-1.0: give US dollars"),
        ({"upstreams": ["http://a"]}, "give a list of trimtab.proxy.Upstream"),
    ],
)
def test_a_wrong_name_or_value_is_an_error_of_the_call(given: dict[str, object], said: str) -> None:
    with pytest.raises((InvalidSetting, TypeError), match=said):
        ProxySettings(**given)  # type: ignore[arg-type]
