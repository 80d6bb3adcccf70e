"""What a person sees who types ``trimtab`` and asks for help: a screen, and sentences."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from trimtab.cli import main
from trimtab.cli.command_table import BESIDES, COMMANDS, ELSEWHERE, GROUPS
from trimtab.cli.commands import parser_of
from trimtab.cli.exit_codes import MEANINGS

COLUMNS, LINES = 100, 40


@pytest.fixture
def printed(capsys, monkeypatch):
    """Run a command that ends well, and return what it printed."""
    monkeypatch.setenv("COLUMNS", str(COLUMNS))

    def run(*argv: str) -> str:
        try:
            code = main(argv)
        except SystemExit as stop:
            code = int(stop.code or 0)
        assert code == 0
        return capsys.readouterr().out

    return run


def fits_a_screen(text: str) -> bool:
    lines = text.splitlines()
    return len(lines) <= LINES and max(map(len, lines)) <= COLUMNS


def test_trimtab_alone_lists_the_commands_in_groups(printed):
    text = printed()
    assert text == printed("--help") == printed("help")
    assert fits_a_screen(text)
    shown = [group for group in GROUPS if group not in BESIDES]
    assert re.findall(r"^(\S.*)\n(?=  )", text, re.M) == shown
    for group in shown:
        for name, command in GROUPS[group].items():
            assert re.search(rf"^  {name} +{re.escape(command.about)}$", text, re.M)


def test_help_all_lists_every_command_and_exit_code(printed):
    text = printed("--help-all")
    assert all(f"  {name} " in text for name in COMMANDS)
    assert all(f"{code}  {meaning}" in text for code, meaning in MEANINGS.items())


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_is_a_sentence_a_line_of_usage_examples_and_ten_options(
    name, printed
):
    command, text = COMMANDS[name], printed(name, "--help")
    assert fits_a_screen(text), text
    sentence, _, usage, _, heading, *rest = text.splitlines()
    assert sentence == command.about
    assert re.fullmatch(r"[A-Z].*[a-z]\.", sentence)
    assert usage.startswith(f"usage: trimtab {name} ")
    assert heading == "examples:"
    assert rest[0] == f"  {command.examples[0]}"
    assert len(command.options) <= 11


@pytest.mark.parametrize("name", COMMANDS)
def test_help_all_of_a_command_has_every_option_with_a_text(name, printed):
    text = printed(name, "--help-all")
    sub = parser_of(name)
    assert all(option in text for option in sub.option_names())
    assert [action.dest for action in sub._actions if not action.help] == []


def test_what_people_call_a_command_leads_to_it(capsys):
    for name, now in ELSEWHERE.items():
        try:
            code = main(name.split())
        except SystemExit as stop:
            code = int(stop.code or 0)
        assert code == 2
        assert f": it is trimtab {now}" in capsys.readouterr().err
        assert now.split()[0] in COMMANDS


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_a_script_that_completes_commands_and_options(shell, printed):
    script = printed("completion", shell)
    assert all(name in script for name in COMMANDS)
    assert "dry-run" in script


def test_without_shtab_completion_names_the_extra(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 2
    assert "pip install 'trimtab[completion]'" in capsys.readouterr().err


def test_what_is_not_asked_for_is_not_loaded():
    code = (
        "import sys; from trimtab.cli import main; main(['--version']); main([]); "
        "print(sorted({'rich', 'shtab', 'trimtab.formats', 'trimtab.proxy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"
