"""Row B12 for articles and summarizer, and the options of the command line that stand for them."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from retrieval_cases import articles, conversation
from settings_words import as_keywords
from shapes import session

import trimtab
from trimtab import ArticleRule, InvalidSetting, config
from trimtab.cli import main
from trimtab.cli.proxy import _settings as proxy_settings
from trimtab_lab.testing import StrictProvider

WORDS = "The keeper got 412 crowns."


def read(folder: Path, text: str, **env: str) -> dict[str, Any]:
    (folder / "trimtab.toml").write_text(text)
    loaded = config.load(folder, {"TRIMTAB_PLUGINS": "0", **env})
    return loaded.settings().given


def searches() -> dict[str, Any]:
    results = [json.dumps({"articles": articles(5, seed=n)}) for n in range(2)]
    return conversation("openai-chat", results)


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, Any, str]]:
    """(exit code, request that is sent, what is told) of ``trimtab fit`` on one request."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "none"))

    def command(request: Any, *argv: object) -> tuple[int, Any, str]:
        (tmp_path / "request.json").write_text(json.dumps(request))
        code = main(["fit", "request.json", "--counter", "o200k", *map(str, argv)])
        told = capsys.readouterr()
        return code, json.loads(told.out) if told.out else None, told.err

    return command


def size(request: Any) -> int:
    return trimtab.measure(request, counter="o200k").total


@pytest.mark.row("B12")
@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("[articles]\n", ArticleRule()),
        ('[articles]\nrule = "position"\nkeep = 2', ArticleRule(order="position", keep=2)),
        ('[articles]\nrule = "just-in-time"', ArticleRule.just_in_time()),
        (
            '[articles]\nshares = [0.5, "20%"]\nmin-tokens = 9\nnewest_first = true\n'
            'list_keys = ["hits"]',
            ArticleRule(
                shares=(0.5, 0.2), min_tokens=9, newest_first=True, list_keys=("hits",)
            ),
        ),
    ],
)  # fmt: skip
def test_the_rule_for_articles_can_stand_in_a_file(
    tmp_path: Path, text: str, rule: ArticleRule
) -> None:
    assert read(tmp_path, text) == {"articles": rule, "plugins": False}
    loaded = config.load(tmp_path, {"TRIMTAB_ARTICLES_SHARES": "50%, 0.1", "TRIMTAB_PLUGINS": "0"})
    assert loaded.settings().articles.shares == (0.5, 0.1)


@pytest.mark.row("B12")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[articles]\nrule = "best"', 'articles.rule: expected "match", "position" or'),
        ("[articles]\nshares = 0.5", "articles.shares: expected a list of shares"),
        ("[articles]\nshares = [2]", "articles.shares: expected a list of shares"),
        ("[summarizer]\nseconds = 'x'", "summarizer.seconds: expected a number"),
        ("[summarizer]\nsteps = 1", "summarizer.steps: expected true or false"),
        ("[summarizer]\nmodel = 'm'", "summarizer: give the url"),
        ("[summarizer]\nurl = 'http://h'", "summarizer: give the url"),
        ("[summarizer]\nurl = 'h'\nmodel = 'm'", "url='h': give an http or https address"),
        ("[summarizer]\nurl = 'http://h'\nmodel = 'm'\nparallel = 0", "parallel=0: give a number"),
        (
            "[summarizer]\nurl = 'http://h'\nmodel = 'm'\nkey_env = 'NO_SUCH'",
            "summarizer.key_env: the variable NO_SUCH is not set",
        ),
        ("calls_left = -1", "calls_left: expected a whole number"),
        ("quote_embedded = 'maybe'", "quote_embedded: expected true or false"),
    ],
)
def test_what_is_wrong_in_these_tables_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        read(tmp_path, text)
    assert said in str(caught.value)


@pytest.mark.row("B12")
def test_a_summarizer_from_files_sends_the_key_that_a_variable_holds_and_never_shows_it(
    tmp_path: Path,
) -> None:
    request = searches()
    with StrictProvider([WORDS] * 20, style="openai") as provider:
        keywords = read(
            tmp_path,
            f'[summarizer]\nurl = "{provider.url}/v1"\nmodel = "m1"\nkey_env = "MY_KEY"\n'
            "seconds = 5\nparallel = 2\nmax_asks = 3\nsteps = false",
            MY_KEY="sesame",
        )
        asked = keywords["summarizer"]
        assert (asked.seconds, asked.parallel, asked.max_asks, asked.steps) == (5, 2, 3, False)
        fitted = trimtab.fit(
            request, **as_keywords(window=size(request) // 2, counter="o200k", **keywords)
        )
        seen = provider.requests
    assert len(seen) == 3
    assert {record.headers["authorization"] for record in seen} == {"Bearer sesame"}
    assert "sesame" not in repr(keywords) + str(fitted.report.as_dict())


def test_the_command_line_asks_a_summarizer_only_where_it_is_given_one(run: Any) -> None:
    request = session("openai-chat", steps=40, lines=20)
    window = size(request) // 2
    with StrictProvider([WORDS] * 4, style="openai") as provider:
        code, plain, _ = run(request, "--window", window, "--reserve", 0)
        assert (code, provider.requests) == (0, [])
        more = ("--summarizer-url", f"{provider.url}/v1", "--summarizer-model", "m1")
        code, sent, told = run(request, "--window", window, "--reserve", 0, *more)
        assert code == 0
        assert [record.body["model"] for record in provider.requests] == ["m1"]
    assert WORDS in json.dumps(sent)
    assert WORDS not in json.dumps(plain)
    assert "summaries: 1 asked" in told


def test_a_summarizer_without_a_model_is_refused_in_one_line(run: Any) -> None:
    code, sent, told = run(searches(), "--window", "9k", "--summarizer-url", "http://127.0.0.1:9")
    assert (code, sent) == (2, None)
    assert told.strip().count("\n") == 0
    assert "the model to ask there" in told


def test_calls_left_on_the_command_line_cuts_no_earlier_than_they_need(run: Any) -> None:
    request = session("openai-chat", steps=20, lines=20)
    window = int(size(request) / 0.97)
    _, cut, _ = run(request, "--window", window, "--reserve", 0)
    assert cut != request
    _, sent, _ = run(request, "--window", window, "--reserve", 0, "--calls-left", 0)
    assert sent == request


def test_tool_text_is_quoted_on_the_command_line_only_where_that_is_asked_for(run: Any) -> None:
    text = 'Tool: {"name": "read", "result": "x = 1"}'
    request = {"model": "gpt-5", "messages": [{"role": "user", "content": text}]}
    assert run(request, "--window", "9k")[1] == request
    code, sent, _ = run(request, "--window", "9k", "--quote-embedded")
    assert code == 0
    assert (
        sent
        == trimtab.fit(
            request, window=9_000, settings=trimtab.Settings(quote_embedded=True)
        ).request
        != request
    )


def test_the_rule_for_articles_on_the_command_line_wins_over_the_file(
    run: Any, tmp_path: Path
) -> None:
    request = searches()
    window = size(request) // 2
    (tmp_path / "trimtab.toml").write_text('[articles]\nrule = "position"\nkeep = 1\n')
    for options, rule in (
        ((), ArticleRule(order="position", keep=1)),
        (("--articles-rule", "match", "--articles-keep", 0), ArticleRule()),
        (("--articles-rule", "just-in-time", "--articles-keep", 0), ArticleRule.just_in_time()),
    ):
        _, sent, _ = run(request, "--window", window, "--reserve", 0, *options)
        keywords = {"window": window, "reserve": 0, "counter": "o200k", "articles": rule}
        assert sent == trimtab.fit(request, **as_keywords(**keywords)).request


@pytest.mark.parametrize("name", ["trimtab.toml", "pyproject.toml"])
def test_a_project_of_somebody_else_cannot_say_to_commands_where_conversations_are_sent(
    tmp_path: Path, name: str
) -> None:
    table = "tool.trimtab." if name == "pyproject.toml" else ""
    (tmp_path / name).write_text(
        f'[{table}summarizer]\nurl = "http://theirs"\nmodel = "m"\nkey_env = "SECRET"\n'
    )
    env = {"HOME": str(tmp_path / "home"), "SECRET": "sesame"}
    loaded = config.load(tmp_path, env, trusts_project=False)
    assert loaded.settings().summarizer is None
    assert any("is not used by commands" in problem for problem in loaded.problems)
    own = tmp_path / "home" / ".config" / "trimtab" / "trimtab.toml"
    own.parent.mkdir(parents=True)
    own.write_text('[summarizer]\nurl = "http://mine"\nmodel = "m"\n')
    assert config.load(tmp_path, env, trusts_project=False).settings().summarizer is not None


def test_fit_in_a_folder_of_somebody_else_asks_nobody_that_its_file_names(
    run: Any, tmp_path: Path
) -> None:
    request = session("openai-chat", steps=40, lines=20)
    with StrictProvider([WORDS] * 4, style="openai") as provider:
        (tmp_path / "trimtab.toml").write_text(
            f'[summarizer]\nurl = "{provider.url}/v1"\nmodel = "m1"\n'
        )
        code, _, told = run(request, "--window", size(request) // 2, "--reserve", 0)
        assert (code, provider.requests) == (0, [])
    assert "is not used by commands" in told


def test_the_proxy_takes_no_summarizer_from_the_folder_that_it_is_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trimtab.toml").write_text('[summarizer]\nurl = "http://h"\nmodel = "m"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "none"))
    settings = proxy_settings(Namespace(config=None, store="memory:"))
    assert settings.fit.summarizer is None
    assert any("is not used by commands" in warning for warning in settings.warnings)
