"""Rows B7, B12, B18 and B20: settings, presets, reducers of others, the log, own requests."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from redundancy_facts import FILE, OTHER, kinds, squeezed
from settings_words import as_keywords
from shapes import FORMATS, inputs, items_of, results, user
from tool_calls import Step, conversation

import trimtab
from trimtab import config
from trimtab.cli import main
from trimtab.errors import InvalidSetting
from trimtab.planning.redundancy import Duplicates, FailedInputs
from trimtab.reducers import REDUCERS, Config, Offer, with_extra
from trimtab.transcript.model import Block

SECRET = "hunter2-hunter2-hunter2"
TALK = [Step("ask", {"n": n}, f"answer {n}: " + f"w{n} " * 400) for n in range(8)]
READ = Step("read", {"path": "a"}, f"{SECRET}\n{FILE}")
WRONG = Step(
    "edit", {"file_path": "b", "old_string": OTHER}, "oldString not found in content", True
)


def body(format: str = "openai-chat") -> dict[str, Any]:
    return conversation(format, READ, WRONG, *TALK[:4], READ, *TALK[4:])


# --- reducers of others -----------------------------------------------------------------------


def shouts(block: Block, config: Config) -> Iterator[Offer]:
    """A reducer of somebody else."""
    if block.kind == "result" and "answer" in block.text:
        yield Offer("replace", "AN ANSWER", 0.01, "shouts", "shorter so")


def fails(block: Block, config: Config) -> Iterator[Offer]:
    raise RuntimeError("not today")


@pytest.mark.row("B7")
@pytest.mark.parametrize("format", FORMATS)
def test_a_reducer_of_somebody_else_takes_part(format: str) -> None:
    fitted = squeezed(format, body(format), 0.3, extra_reducers=[shouts])
    assert "shouts" in kinds(fitted)
    assert "AN ANSWER" in results(format, fitted.request)
    assert trimtab.check(fitted.request, format=format) == ()


@pytest.mark.row("B7")
@pytest.mark.parametrize("format", FORMATS)
def test_a_reducer_that_raises_is_skipped_and_reported_once(format: str) -> None:
    given = body(format)
    fitted = squeezed(format, given, 0.6, extra_reducers=[fails])
    assert fitted.report.warnings == ("reducer skipped: fails: RuntimeError: not today",)
    assert fitted.request == squeezed(format, given, 0.6).request


@pytest.mark.row("B7")
def test_notes_on_old_steps_that_raise_are_skipped_and_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("not today")

    monkeypatch.setattr("trimtab.planning.make_room.fold", broken)
    fitted = squeezed("openai-chat", body("openai-chat"), 0.15)
    assert fitted.report.warnings == ("fold skipped: RuntimeError: not today",)


@pytest.mark.row("B7")
@pytest.mark.parametrize(
    ("offer", "said"),
    [
        ("text", "str is no Offer"),
        (Offer("replace", "", 0.1, "x", "x"), "no text to show"),
        (Offer("remove", "", 0.1, "x", "x"), "a result cannot be removed"),
        (Offer("replace", "short", float("nan"), "x", "x"), "loss nan"),
        (Offer("replace", "short", -1, "x", "x"), "loss -1"),
        (Offer("burn", "short", 0.1, "x", "x"), "op 'burn'"),  # type: ignore[arg-type]
        (Offer("replace", 7, 0.1, "x", "x"), "no text to show"),  # type: ignore[arg-type]
    ],
)
def test_an_offer_that_would_break_a_request_is_skipped_and_reported(offer: Any, said: str) -> None:
    def odd(block: Block, config: Config) -> Iterator[Offer]:
        if block.kind == "result":
            yield offer

    given = body()
    fitted = squeezed("openai-chat", given, 0.6, extra_reducers=[odd])
    assert any(said in warning for warning in fitted.report.warnings)
    assert fitted.request == squeezed("openai-chat", given, 0.6).request


@pytest.mark.row("B7")
@pytest.mark.parametrize("format", FORMATS)
def test_arguments_offered_as_anything_but_an_object_are_refused(format: str) -> None:
    def odd(block: Block, config: Config) -> Iterator[Offer]:
        if block.kind == "call":
            yield Offer("replace", "[]", 0.0, "odd", "x")

    fitted = squeezed(format, body(format), 0.6, extra_reducers=[odd])
    assert fitted.report.warnings == ("reducer skipped: odd: ValueError: not a JSON object",)


@pytest.mark.row("B7")
def test_results_are_merged_per_reducer_in_a_documented_order() -> None:
    names = [reducer.__name__ for reducer in REDUCERS]
    assert names.index("duplicates") < names.index("failed_inputs") < names.index("cut")
    joined = [reducer.__name__ for reducer in with_extra(REDUCERS, [shouts, fails])]
    at = joined.index("shouts")
    assert joined[at + 1] == "fails"
    assert joined.index("failed_inputs") < at < joined.index("reasoning")
    fitted = squeezed("openai-chat", body(), 0.8)
    rows = {edit.kind for edit in fitted.report.edits}
    assert {"duplicate", "failed-input"} <= rows


@pytest.mark.row("B7")
def test_reducers_replace_ours_where_asked() -> None:
    fitted = squeezed("openai-chat", body(), 0.7, reducers=[shouts])
    assert kinds(fitted) <= {"shouts", "drop"}


class Point:
    """An entry point as ``importlib.metadata`` gives it."""

    def __init__(self, name: str, value: Any) -> None:
        self.name, self.value, self._loaded = name, f"package:{name}", value

    def load(self) -> Any:
        if isinstance(self._loaded, Exception):
            raise self._loaded
        return self._loaded


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [Point("zz", shouts), Point("broken", ImportError("no module")),
              Point("aa", (fails, shouts)), Point("odd", [3])]  # fmt: skip
    monkeypatch.setattr(metadata, "entry_points", lambda group: points)


@pytest.mark.row("B7")
@pytest.mark.usefixtures("installed")
def test_reducers_of_installed_packages_are_loaded_by_name(tmp_path: Path) -> None:
    loaded = config.load(tmp_path, {})
    assert loaded.reducers == (fails, shouts, shouts)
    assert loaded.settings().extra_reducers == loaded.reducers
    assert loaded.problems == [
        "reducer broken (package:broken): no module; left out",
        "reducer odd (package:odd): 3 is no function from a block to offers; left out",
    ]
    assert config.load(tmp_path, {"TRIMTAB_PLUGINS": "off"}).reducers == ()


# --- settings ----------------------------------------------------------------------------------

ALL = """
window = "128k"
trigger = "90%"
target = 0.6
preset = "economy"
protected-tools = ["task", "todo*"]
protected_paths = ["**/.env"]
protected_turns = 4
strict = false
[duplicates]
enabled = false
protected_tools = ["bash"]
[failed_inputs]
enabled = true
min_calls = 0
min-turns = 2
"""


def read(folder: Path, **env: str) -> config.Loaded:
    return config.load(folder, {"TRIMTAB_PLUGINS": "0", **env})


@pytest.mark.row("B12")
def test_every_setting_can_stand_in_trimtab_toml(tmp_path: Path) -> None:
    (tmp_path / "trimtab.toml").write_text(ALL)
    loaded = read(tmp_path)
    assert loaded.problems == []
    assert loaded.settings() == trimtab.Settings(
        window=128_000,
        trigger=0.9,
        target=0.6,
        preset="economy",
        protected_tools=("task", "todo*"),
        protected_paths=("**/.env",),
        protected_turns=4,
        strict=False,
        duplicates=Duplicates(enabled=False, protected_tools=("bash",)),
        failed_inputs=FailedInputs(min_calls=0, min_turns=2),
        plugins=False,
    )
    assert trimtab.fit(body(), settings=loaded.settings())


@pytest.mark.row("B12")
def test_defaults_are_those_of_the_row() -> None:
    assert FailedInputs() == FailedInputs(enabled=True, min_calls=5, protected_tools=())
    assert Duplicates() == Duplicates(enabled=True, superseded=True, protected_tools=())


@pytest.mark.row("B12")
def test_layers_global_then_project_then_environment(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "work" / "deep" / "er"
    (home / "trimtab").mkdir(parents=True)
    project.mkdir(parents=True)
    (home / "trimtab" / "trimtab.toml").write_text(
        'window = 1000\ntarget = 0.9\nmodel = "own"\n[duplicates]\nenabled = false\n'
    )
    (tmp_path / "work" / "pyproject.toml").write_text(
        "[tool.trimtab]\nwindow = 2000\ntarget = 0.8\n[tool.trimtab.duplicates]\nsuperseded = false"
    )
    loaded = read(project, XDG_CONFIG_HOME=str(home), TRIMTAB_TARGET="70%")
    assert loaded.settings() == trimtab.Settings(
        window=2_000,
        target=0.7,
        model="own",
        duplicates=Duplicates(enabled=False, superseded=False),
        plugins=False,
    )
    assert [Path(source).name for source in loaded.sources] == [
        "trimtab.toml", "pyproject.toml", "the environment",
    ]  # fmt: skip


@pytest.mark.row("B12")
def test_the_nearest_file_is_the_projects_and_trimtab_toml_comes_first(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "trimtab.toml").write_text("window = 1")
    (inner / "pyproject.toml").write_text("[tool.other]\nx = 1")
    assert read(inner).values["window"] == 1
    (inner / "pyproject.toml").write_text("[tool.trimtab]\nwindow = 2")
    assert read(inner).values["window"] == 2
    (inner / "trimtab.toml").write_text("window = 3")
    assert read(inner).values["window"] == 3


@pytest.mark.row("B12")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("window = true", "window: expected a whole number above 0, or text such as"),
        ('window = "many"', """or text such as "128k", got 'many'"""),
        ("target = 2", "target: expected a share above 0 and up to 1"),
        ("target = true", "target: expected a share"),
        ("strict = 1", "strict: expected true or false, got 1 (int)"),
        ('preset = "wild"', 'preset: expected "balanced", "economy" or "in-place"'),
        ('prices = "read"', 'prices: expected "claude-5m", "claude-1h", "openai"'),
        ('protected_tools = "bash"', "protected_tools: expected a list of texts, got 'bash'"),
        ("duplicates = true", "duplicates: expected a table, got True (bool)"),
        ("[failed_inputs]\nmin_calls = -1", "failed_inputs.min_calls: expected a whole number"),
        ("[duplicates]\nenabled = 'often'", "duplicates.enabled: expected true or false"),
        ("window = ", "Invalid value"),
    ],
)  # fmt: skip
def test_a_wrong_type_is_rejected_with_key_expected_and_actual(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "trimtab.toml").write_text(text)
    with pytest.raises(InvalidSetting) as caught:
        read(tmp_path)
    assert said in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "trimtab.toml"))


@pytest.mark.row("B12")
def test_unknown_keys_are_reported_with_a_suggestion(tmp_path: Path) -> None:
    file = tmp_path / "trimtab.toml"
    file.write_text("taget = 0.5\nzzz = 1\nwindow = 9\n[duplicates]\nenable = true\n")
    loaded = read(tmp_path, TRIMTAB_WINDOWS="1", TRIMTAB_DATA="x", TRIMTAB_TRACEBACK="1")
    assert loaded.problems == [
        f"{file}: unknown key taget; did you mean target?",
        f"{file}: unknown key zzz",
        f"{file}: unknown key duplicates.enable; did you mean duplicates.enabled?",
        "the environment: unknown variable TRIMTAB_WINDOWS; did you mean TRIMTAB_WINDOW?",
    ]
    assert loaded.values == {"window": 9, "duplicates": {}, "plugins": False}


@pytest.mark.row("B12")
@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("[error_pruning]\nenabled = true", "error_pruning; did you mean failed_inputs?"),
        ("[errorPruning]\nminAge = 5", "errorPruning; did you mean failed_inputs?"),
        ("[purgeErrors]\nturns = 4", "purgeErrors; did you mean failed_inputs?"),
        ("[deduplication]\nenabled = true", "deduplication; did you mean duplicates?"),
        ("[failed_inputs]\nminAge = 5", "failed_inputs.minAge; did you mean failed_inputs.min_c"),
        ("[failed_inputs]\nturns = 5", "failed_inputs.turns; did you mean failed_inputs.min_turns"),
        ("[duplicates]\nsupersedeWrites = true", "supersedeWrites; did you mean duplicates.supers"),
        ("protectedFilePatterns = ['a']", "protectedFilePatterns; did you mean protected_paths?"),
        ("protectedTools = ['a']", "protectedTools; did you mean protected_tools?"),
        ("turn_protection = 4", "turn_protection; did you mean protected_turns?"),
    ],
)  # fmt: skip
def test_the_words_of_other_programs_lead_to_ours(tmp_path: Path, text: str, meant: str) -> None:
    (tmp_path / "trimtab.toml").write_text(text)
    (problem,) = read(tmp_path).problems
    assert meant in problem


@pytest.mark.row("B12")
def test_the_environment_has_every_key(tmp_path: Path) -> None:
    env = {
        "TRIMTAB_WINDOW": "32k", "TRIMTAB_PRESET": "economy", "TRIMTAB_PROTECTED_TOOLS": "a, b*,",
        "TRIMTAB_FAILED_INPUTS_MIN_CALLS": "0", "TRIMTAB_DUPLICATES_ENABLED": "no",
        "TRIMTAB_STRICT": "on", "TRIMTAB_MODEL": "",
    }  # fmt: skip
    assert read(tmp_path, **env).settings() == trimtab.Settings(
        window=32_000, preset="economy", protected_tools=("a", "b*"),
        failed_inputs=FailedInputs(min_calls=0), duplicates=Duplicates(enabled=False), strict=True,
        plugins=False,
    )  # fmt: skip
    with pytest.raises(InvalidSetting, match="TRIMTAB_STRICT: expected true or false, got 'maybe'"):
        read(tmp_path, TRIMTAB_STRICT="maybe")
    with pytest.raises(InvalidSetting, match=r"TRIMTAB_PRICES: expected .* got 'read'"):
        read(tmp_path, TRIMTAB_PRICES="read")


@pytest.mark.row("B12")
@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        (
            {"preset": "wild"},
            'preset=\'wild\': give "balanced", "economy" or "in-place"',
        ),
        ({"target": 0}, "target=0: give a share"),
        ({"protected_turns": -1}, "protected_turns=-1: give a whole number"),
        ({"duplicates": True}, "duplicates=True: give a trimtab.settings.Duplicates"),
        ({"failed_inputs": {}}, "failed_inputs={}: give a trimtab.settings.FailedInputs"),
        ({"failed_inputs": FailedInputs(min_calls=-5)}, "failed_inputs.min_calls=-5: give a"),
        ({"extra_reducers": [3]}, "extra_reducers=[3]: give a list of functions"),
        ({"client_requests": "title"}, "client_requests='title': give a list of texts"),
    ],
)
def test_wrong_arguments_are_rejected_too(keywords: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        trimtab.fit(body(), **as_keywords(window=10_000, **keywords))
    assert str(caught.value).startswith(said)


@pytest.mark.row("B12")
def test_fit_itself_reads_no_file_and_no_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trimtab.toml").write_text("window = 1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRIMTAB_WINDOW", "1")
    given = body()
    assert trimtab.fit(given, window=10**6).request is given
    with pytest.raises(InvalidSetting, match="no window"):
        trimtab.fit(given)


@pytest.mark.row("B12")
def test_a_session_can_be_made_from_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "trimtab.toml").write_text("window = 1_000_000\nunknwn = 1\n")
    given = body()
    with caplog.at_level(logging.WARNING, "trimtab"):
        session = trimtab.Session.from_config(tmp_path, settings=trimtab.Settings(counter="o200k"))
    assert session.fit(given).request is given
    assert "unknown key unknwn" in caplog.text
    assert trimtab.load_settings(tmp_path).window == 1_000_000


@pytest.mark.row("B12")
def test_the_command_line_takes_files_and_its_options_win(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "none"))
    (tmp_path / "request.json").write_text(json.dumps(body()))
    (tmp_path / "trimtab.toml").write_text('window = "10m"\npreset = "economy"\ntaget = 1\n')
    assert main(["fit", "request.json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out) == body()
    assert "settings from" in told.err
    assert "unknown key taget; did you mean target?" in told.err
    assert main(["fit", "request.json", "--window", "4k", "--preset", "balanced"]) == 0
    assert json.loads(capsys.readouterr().out) != body()
    assert main(["fit", "request.json", "--no-config"]) == 2
    assert "no window" in capsys.readouterr().err


# --- presets -----------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["balanced", "economy", "in-place"])
def test_no_preset_changes_what_was_sent_more_than_once_in_five_turns(preset: str) -> None:
    steps = [Step("ask", {"n": n}, f"answer {n}: " + f"w{n} " * 300) for n in range(80)]
    messages = conversation("openai-chat", *steps)["messages"]
    session = trimtab.Session(
        window=12_000, reserve=0, preset=preset, settings=trimtab.Settings(counter="o200k")
    )
    before: list[Any] = []
    breaks = 0
    for end in range(3, len(messages), 2):
        sent = session.fit(messages[:end]).request
        breaks += sent[: len(before)] != before
        before = sent
    assert 0 < breaks <= 16


@pytest.mark.parametrize("format", FORMATS)
def test_economy_leaves_little_history_and_the_dial_wins_over_the_preset(format: str) -> None:
    given = body(format)
    size = trimtab.fit(
        given, window=10**9, format=format, settings=trimtab.Settings(counter="o200k")
    ).report.tokens_before
    fits = {"window": int(size / 0.97), "reserve": 0, "format": format, "counter": "o200k"}
    dialled = trimtab.fit(given, **as_keywords(preset="economy", target=0.7, **fits)).report
    balanced = trimtab.fit(given, **as_keywords(target=0.7, **fits)).report
    assert dialled.limits == balanced.limits
    session = trimtab.Session(**as_keywords(preset="economy", **fits))
    again = trimtab.Session(**as_keywords(**fits)).fit(given, preset="economy").report
    assert session.fit(given).report.limits == again.limits


# --- the log -----------------------------------------------------------------------------------


@pytest.mark.row("B18")
@pytest.mark.parametrize("format", FORMATS)
def test_the_log_counts_replacements_per_cause_and_shows_no_bodies(
    format: str, caplog: pytest.LogCaptureFixture
) -> None:
    given = body(format)
    size = trimtab.fit(
        given, window=10**9, format=format, settings=trimtab.Settings(counter="o200k")
    ).report.tokens_before
    limits = trimtab.Settings(window=int(size / 0.95), reserve=0, trigger=0.9, target=0.8)
    session = trimtab.Session(format=format, settings=limits | trimtab.Settings(counter="o200k"))
    with caplog.at_level(logging.DEBUG, "trimtab"):
        fitted = session.fit(given)
    infos = [row.getMessage() for row in caplog.records if row.levelno == logging.INFO]
    debugs = [row.getMessage() for row in caplog.records if row.levelno == logging.DEBUG]
    assert len(infos) == 1
    assert infos[0].startswith("cut 1 result and 1 call (")
    assert "duplicate ×1" in infos[0]
    assert "failed-input ×1" in infos[0]
    assert len(debugs) == len(fitted.report.edits)
    assert SECRET not in caplog.text
    assert "Thing1" not in caplog.text
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "trimtab"):
        session.fit(given)  # nothing new was done, so nothing is counted again
    assert caplog.records == []


# --- a client's own requests -------------------------------------------------------------------


def asking(format: str, text: str) -> dict[str, Any]:
    """The conversation with a request of the client's own at its end."""
    given = body(format)
    if format == "bedrock":
        items_of(given)[-1]["content"][-1]["text"] = text
    else:
        items_of(given)[-1:] = user(format, text)
    return given


SUMMARY = "Your task is to create a detailed summary of the conversation so far, in sections."


@pytest.mark.row("B20")
@pytest.mark.parametrize("format", FORMATS)
def test_a_clients_own_request_is_reduced_only_where_it_would_not_fit(format: str) -> None:
    given = asking(format, SUMMARY)
    fitted = squeezed(format, given)
    assert fitted.request is given
    asked = squeezed(format, given, client_requests=())
    assert asked.report.edits
    size = fitted.report.tokens_before
    small = trimtab.fit(
        given,
        window=size - 500,
        reserve=0,
        format=format,
        settings=trimtab.Settings(counter="o200k"),
    )
    assert size - 2_500 < small.report.tokens_after <= size - 500


@pytest.mark.row("B20")
@pytest.mark.parametrize("format", FORMATS)
def test_signatures_can_be_given_and_a_quoted_one_is_none(format: str) -> None:
    given = asking(format, "  NAME THIS CHAT in three words.")
    assert squeezed(format, given).report.edits
    assert squeezed(format, given, client_requests=["name this chat"]).request is given
    quoted = asking(format, f'The client says "{SUMMARY}" each hour. Why?')
    assert squeezed(format, quoted).report.edits


@pytest.mark.row("B20")
@pytest.mark.parametrize(
    ("format", "system"),
    [("openai-chat", None), ("anthropic", "system"), ("openai-responses", "instructions"),
     ("bedrock", "system"), ("gemini", "systemInstruction")],
)  # fmt: skip
def test_a_title_request_is_known_by_its_system_text(format: str, system: str | None) -> None:
    said = "You are a title generator. You output ONLY a thread title."
    given = body(format)
    if system is None:
        given["messages"].insert(0, {"role": "system", "content": said})
    else:
        parts = {"bedrock": [{"text": said}], "gemini": {"parts": [{"text": said}]}}
        given[system] = parts.get(format, said)
    assert squeezed(format, given).request is given


@pytest.mark.row("B20")
@pytest.mark.parametrize("format", FORMATS)
def test_a_clients_own_request_leaves_no_trace_in_the_session(format: str) -> None:
    given = asking(format, SUMMARY)
    size = trimtab.fit(
        given, window=10**9, format=format, settings=trimtab.Settings(counter="o200k")
    ).report.tokens_before
    session = trimtab.Session(
        window=size - 500, reserve=0, format=format, settings=trimtab.Settings(counter="o200k")
    )
    before = session.journal
    fitted = session.fit(given)
    assert fitted.report.edits
    assert session.journal == before
    edit = fitted.report.edits[0]
    assert fitted.recall(edit.handle)
    assert inputs(format, given)
