"""Help that fits a screen: a sentence, examples and the options that people need; ``--help-all``
has all."""

from __future__ import annotations

import argparse
import copy
import re
from typing import Any, NoReturn

from trimtab.amounts import many
from trimtab.cli.command_table import BESIDES, COMMANDS, GROUPS, Command
from trimtab.cli.exit_codes import MEANINGS, USAGE
from trimtab.suggestions import nearest

_LOGS = ("fit", "check", "inspect", "convert")
"""Commands that take a request, or a log with many."""


_ARGPARSE = (
    ("^argument ", ""),
    ("^the following arguments are required: (.*, .*)", r"\1 are missing"),
    ("^the following arguments are required: (.*)", r"\1 is missing"),
    ("invalid (?:int|float) value: (.*)", r"\1 is no number"),
    ("expected one argument", "a value has to follow"),
)
"""Words of argparse's errors → ours."""


class Parser(argparse.ArgumentParser):
    """The parser of one command: errors in one line, usage in one line, help on one screen."""

    def __init__(self, prog: str, command: Command) -> None:
        super().__init__(prog, usage=argparse.SUPPRESS, add_help=False, formatter_class=_Formatter)
        self._command = command
        self.add_argument("-h", "--help", action=_Help, help="show this help")
        self.add_argument("--help-all", action=_Help, help="show every option")

    def error(self, message: str) -> NoReturn:
        for words, ours in _ARGPARSE:
            message = re.sub(words, ours, message)
        self.exit(USAGE, f"trimtab: {message}; see {self.prog} --help\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            names = [str(choice) for choice in action.choices]
            text = f"{value!r} is none of {', '.join(names)}{nearest(str(value), names)}"
            raise argparse.ArgumentError(action, text)

    def option_names(self) -> set[str]:
        """Every spelling of every option."""
        return {name for name in self._option_string_actions if name.startswith("--")}

    def format_usage(self) -> str:
        """``usage: trimtab convert [OPTIONS] --to NAME [FILE]``."""
        return f"usage: {self._usage_line()}\n"

    def _usage_line(self) -> str:
        named = [one for one in self._actions if one.option_strings]
        needed = [f"{one.option_strings[-1]} {one.metavar}" for one in named if one.required]
        takes = [_shown(one) for one in self._actions if not one.option_strings]
        return " ".join([self.prog, "[OPTIONS]", *needed, *takes])

    def format_help(self) -> str:
        """The first screen."""
        shown = self._command.options
        if not shown:
            return self.format_all()
        page = self._page()
        found = {action.option_strings[-1]: action for action in self._actions
                 if action.option_strings}  # fmt: skip
        rows = [action for action in self._actions if not action.option_strings]
        rows += [found.get(name) or self._option_string_actions[name] for name in shown]
        page.start_section("options")
        page.add_arguments([_first_clause(action) for action in rows])
        page.end_section()
        more = len(found) - len(shown) - 2  # --help and --help-all
        says = f"shows {many(more, 'more option')}" if more else "says more of them"
        page.add_text(f"--help-all {says}.")
        return page.format_help()

    def format_all(self) -> str:
        """Every option, and what a FILE may contain."""
        parts = [self._page().format_help(), super().format_help()]
        if about := _what_a_file_is(self.prog.rpartition(" ")[2]):
            parts.append(f"{about}\n")
        return "\n".join(parts)

    def _page(self) -> _Formatter:
        """The sentence, the usage and the examples."""
        page = _Formatter(self.prog)
        page.add_text(self._command.about)
        page.add_text(f"usage: {self._usage_line()}")
        page.add_text("\n".join(["examples:", *(f"  {one}" for one in self._command.examples)]))
        return page


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """An option with its argument in one column, the argument named once."""

    def __init__(self, prog: str, **keywords: Any) -> None:
        super().__init__(prog, max_help_position=28, **keywords)

    def _expand_help(self, action: argparse.Action) -> str:
        text = super()._expand_help(action)
        return f"{', '.join(map(str, action.choices))}: {text}" if action.choices else text

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings:
            return str(action.metavar or action.dest)
        names = ", ".join(action.option_strings)
        if action.nargs == 0:
            return names
        return f"{names} {action.metavar or ('NAME' if action.choices else action.dest.upper())}"


class _Help(argparse.Action):
    """``--help`` and ``--help-all``."""

    def __init__(self, option_strings: list[str], dest: str, help: str) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: Any, *_: Any) -> None:
        is_all = self.option_strings == ["--help-all"]
        print(parser.format_all() if is_all else parser.format_help(), end="")
        parser.exit()


def _shown(action: argparse.Action) -> str:
    """A positional argument as a usage line has it."""
    name = str(action.metavar or action.dest)
    if action.nargs in ("?", "*"):
        return f"[{name}{' …' if action.nargs == '*' else ''}]"
    return f"{name} …" if action.nargs == "+" else name


def _first_clause(action: argparse.Action) -> argparse.Action:
    """The same option, with the first clause of its help."""
    short = copy.copy(action)
    short.help = re.split(r";(?![^(]*\))", action.help or "")[0]
    if isinstance(action, argparse.BooleanOptionalAction):
        short.option_strings = action.option_strings[:1]
    return short


def _what_a_file_is(name: str) -> str:
    """What a FILE may contain, for commands that take one; else ""."""
    from trimtab.cli.logged_requests import LOGS
    from trimtab.formats import FORMATS

    lines: list[str] = []
    if name in (*_LOGS, "sweep"):
        lines += ["FILE is the body of a request or a bare list of its messages, in one of"]
        lines += [f"  {', '.join(sorted(FORMATS))}"]
        if name in _LOGS:
            lines += ["or a log; --turn chooses one of its requests:", f"  {LOGS}"]
    elif name in ("replay", "bill"):
        lines += [f"read are {LOGS}"]
    return "\n".join(lines)


def overview(*, everything: bool = False) -> str:
    """What ``trimtab`` alone prints: the commands in groups; ``everything``: all of them, and the
    exit codes."""
    lines = [
        "trimtab keeps the requests of LLM agents within their model's window, so that they are",
        "answered.  Whatever it cuts can be read again, and put back.",
        "",
        "usage: trimtab COMMAND [OPTIONS]",
    ]
    width = max(map(len, COMMANDS)) + 2
    for group, commands in GROUPS.items():
        if everything or group not in BESIDES:
            lines += ["", group]
            lines += [f"  {name:{width}}{one.about}" for name, one in commands.items()]
    if everything:
        lines += ["", "exit codes"]
        lines += [f"  {code:>2}  {meaning}" for code, meaning in MEANINGS.items()]
        lines += ["", "trimtab COMMAND --help has examples."]
    else:
        others = ", ".join(name for group in BESIDES for name in GROUPS[group])
        lines += ["", "trimtab COMMAND --help has examples.",
                  f"trimtab --help-all has {others}, and the exit codes."]  # fmt: skip
    return "\n".join(lines) + "\n"
