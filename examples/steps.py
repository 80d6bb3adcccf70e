"""What the agent of the example conversation says and calls, step by step.

Knows the story (a bug in ``tally``, found and mended) and no format; what the calls return is
not written here, ``record.py`` runs them.
"""

from __future__ import annotations

from typing import Any

Call = tuple[str, dict[str, Any]]
Step = tuple[str, str, tuple[Call, ...]]
"""(speaker, text, calls): ``user`` steps carry no calls."""

SYSTEM = """\
You are a coding agent in a terminal. You work on the project in the current folder until the \
user's request is done, and you prove what you say with commands.

Rules
- Read before you write. Look at the callers of what you change.
- Small steps: one change, then the tests that cover it, then the next.
- Call several tools in one turn when the calls do not depend on each other.
- Never edit files under logs/: they are evidence. Never print secrets.
- A change comes with a test that fails without it and an entry in CHANGELOG.md.
- Commit messages are one line in the present tense and name the ticket.
- When you are done, say what was wrong, what you changed, and what you did not check.

Project notes (TALLY.md)
- Python 3.11+, no dependencies, tests with pytest.
- Hours are half-open. A bad line is counted, it never stops a report.
- Offsets are spelled +0545 in logs and +05:45 on the command line; both go through parse_zone.
- The nightly job runs `python -m tally logs/ --csv out.csv --zone=-03:30` for St. John's.
- Tickets: T-4417 (hours of St. John's are wrong), T-4422 (the zone is missing in the CSV).
"""


def _tool(name: str, about: str, **fields: str) -> dict[str, Any]:
    properties = {field: {"type": "string", "description": text} for field, text in fields.items()}
    schema = {"type": "object", "properties": properties, "required": list(fields)}
    return {"name": name, "description": about, "input_schema": schema}


TOOLS = [
    _tool(
        "bash",
        "Run a command in the project folder and return what it printed (stdout and stderr) and, "
        "when it is not 0, its exit status.",
        command="The command line, for sh.",
    ),
    _tool(
        "read_file",
        "Return a text file with line numbers.",
        path="Path of the file, relative to the project folder.",
    ),
    _tool(
        "edit_file",
        "Replace the one place where `old` stands in a file. Fails when it stands there never or "
        "more than once.",
        path="Path of the file, relative to the project folder.",
        old="The text to replace, exactly as it stands in the file.",
        new="The text to put there.",
    ),
    _tool(
        "write_file",
        "Write a whole file; makes it when it is not there.",
        path="Path of the file, relative to the project folder.",
        content="The whole text of the file.",
    ),
    _tool(
        "grep",
        "Search all Python files of the project and return matching lines with file and line "
        "number.",
        pattern="Extended regular expression.",
    ),
]


def _bash(command: str) -> Call:
    return "bash", {"command": command}


def _read(path: str) -> Call:
    return "read_file", {"path": path}


def _edit(path: str, old: str, new: str) -> Call:
    return "edit_file", {"path": path, "old": old, "new": new}


def _grep(pattern: str) -> Call:
    return "grep", {"pattern": pattern}


REGRESSION = '''\
"""The hours of St. John's (T-4417): a log of a half-hour zone west of Greenwich, end to end."""

from datetime import UTC, datetime, timedelta

import pytest
from tally.clock import hour_of, parse_zone
from tally.parse import parse_line
from tally.report import build

LINE = '203.0.113.7 - - [{stamp}] "GET /v1/orders HTTP/1.1" 200 5123 req=9f3c2a'

# (as the log spells it, the same moment in UTC)
MOMENTS = [
    ("01/Mar/2024:18:00:00 -0330", datetime(2024, 3, 1, 21, 30, tzinfo=UTC)),
    ("01/Mar/2024:23:47:10 -0330", datetime(2024, 3, 2, 3, 17, 10, tzinfo=UTC)),
    ("01/Mar/2024:23:47:10 -0930", datetime(2024, 3, 2, 9, 17, 10, tzinfo=UTC)),
    ("01/Mar/2024:23:47:10 +0545", datetime(2024, 3, 1, 18, 2, 10, tzinfo=UTC)),
    ("01/Mar/2024:00:10:00 -0030", datetime(2024, 3, 1, 0, 40, tzinfo=UTC)),
]


@pytest.mark.parametrize(("stamp", "moment"), MOMENTS)
def test_a_line_is_read_as_the_moment_it_names(stamp, moment):
    assert parse_line(LINE.format(stamp=stamp)).when == moment


@pytest.mark.parametrize(("stamp", "moment"), MOMENTS)
def test_its_hour_on_the_wall_is_the_hour_in_the_line(stamp, moment):
    zone = parse_zone(stamp[-5:])
    assert hour_of(moment, zone).hour == int(stamp[12:14])


def test_a_report_keeps_the_total_whatever_the_zone():
    records = [parse_line(LINE.format(stamp=stamp)) for stamp, _ in MOMENTS]
    for zone in ("Z", "-03:30", "+05:45", "-00:30"):
        report = build(records, parse_zone(zone))
        assert sum(hour.requests for hour in report.hours) == len(MOMENTS)


def test_minutes_without_hours_keep_their_sign():
    assert parse_zone("-00:30").utcoffset(None) == -timedelta(minutes=30)
'''

STEPS: list[Step] = [
    (
        "user",
        "The nightly report puts requests from St. John's (UTC-03:30) into the wrong hour, and a "
        "few tests fail. Find out why, mend it (ticket T-4417), add a regression test. In the "
        "logs of 1 March the first request that failed in St. John's is the one support asked "
        "about, so tell me its id too. Do not touch the log files.",
        (),
    ),
    (
        "assistant",
        "I start with the layout, the history and the notes.",
        (
            _bash("ls -lR --time-style=+%Y-%m-%d ."),
            _bash("git log --stat"),
            _read("README.md"),
        ),
    ),
    ("assistant", "Now the tests, in full.", (_bash("python -m pytest -vv --color=yes"),)),
    (
        "assistant",
        "All failures have a negative offset that is not a whole hour. The sources:",
        (
            _read("tally/clock.py"),
            _read("tally/parse.py"),
            _read("tally/report.py"),
            _read("tests/test_clock.py"),
        ),
    ),
    (
        "assistant",
        "`int(digits[:3])` takes the sign with the hours and loses it for the minutes: -03:30 "
        "becomes -3 h + 30 min = -02:30. Before I change it: who calls it, and what do the logs "
        "look like?",
        (
            _grep("parse_zone|spell_zone|utcoffset"),
            _bash("python tools/make_logs.py logs 150 && wc logs/*.log"),
            _bash("git status --short"),
        ),
    ),
    ("assistant", "The log of St. John's as it is.", (_bash("cat logs/stjohns.log"),)),
    (
        "assistant",
        "The report before the change, to compare with later.",
        (
            _bash("python -m tally logs --zone -03:30"),
            _bash("python -m tally logs --zone -03:30 --json"),
        ),
    ),
    (
        "assistant",
        "argparse takes -03:30 for an option; with `=` it works.",
        (
            _bash("python -m tally logs --zone=-03:30"),
            _bash("python -m tally logs --zone=-03:30 --json"),
        ),
    ),
    (
        "assistant",
        "Mend the sign: it belongs to the whole offset.",
        (
            _edit(
                "tally/clock.py",
                '    digits = text.replace(":", "")\n'
                "    hours, minutes = int(digits[:3]), int(digits[3:5])\n"
                "    return timezone(timedelta(hours=hours, minutes=minutes))\n",
                '    sign, digits = -1 if text[0] == "-" else 1, text[1:].replace(":", "")\n'
                "    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:4]))\n"
                "    return timezone(sign * offset)\n",
            ),
        ),
    ),
    (
        "assistant",
        "A regression test that goes from the line to the report, and the tests again.",
        (("write_file", {"path": "tests/test_st_johns.py", "content": REGRESSION}),),
    ),
    ("assistant", "", (_bash("python -m pytest -vv --color=yes"),)),
    (
        "assistant",
        "Only `test_rows_name_the_zone_of_the_hour` is left, and that is the CSV, not the clock. "
        "Does the new test fail without the change?",
        (
            _bash("git stash push -q tally/clock.py && python -m pytest -q tests/test_st_johns.py"),
            _bash("git stash pop"),
        ),
    ),
    (
        "assistant",
        "It does (nine of the twelve fail). The request that support asked about, and the report "
        "after the change:",
        (
            _bash("grep -nE '\" 50[0-9] ' logs/stjohns.log | head -5"),
            _bash("python -m tally logs --zone=-03:30"),
            _bash("python -m tally logs --zone=-03:30 --json"),
        ),
    ),
    (
        "user",
        "Good. Then do T-4422 as well: the CSV must name the zone of each hour, that is the test "
        "that still fails. Check that nothing else reads the CSV column, and compare the sites.",
        (),
    ),
    (
        "assistant",
        "",
        (
            _read("tally/export.py"),
            _read("tally/__main__.py"),
            _read("tests/test_report.py"),
            _grep("COLUMNS|write_csv|rows\\("),
        ),
    ),
    (
        "assistant",
        "Nothing else reads it. `spell_zone` is the spelling we use on the command line.",
        (
            _edit(
                "tally/export.py",
                "from tally.report import Report\n",
                "from tally.clock import spell_zone\nfrom tally.report import Report\n",
            ),
            _edit(
                "tally/export.py",
                '        start = hour.start.strftime("%Y-%m-%d %H:%M")\n',
                '        start = f"{hour.start:%Y-%m-%d %H:%M} {spell_zone(report.zone)}"\n',
            ),
        ),
    ),
    (
        "assistant",
        "",
        (
            _bash("python -m pytest -q"),
            _bash("python -m tally logs --zone=-03:30 --csv ~/out.csv && cat ~/out.csv"),
            _bash("tail -n 60 logs/kathmandu.log"),
            _bash("tail -n 60 logs/denver.log"),
        ),
    ),
    (
        "assistant",
        "All green. The changelog, then a last look at the whole change.",
        (
            (
                "write_file",
                {
                    "path": "CHANGELOG.md",
                    "content": "# Changelog\n\n## Unreleased\n\n"
                    "- Offsets west of Greenwich that are no whole hour, such as -03:30, are read "
                    "right (T-4417).\n- The hour column of the CSV names the zone (T-4422).\n",
                },
            ),
        ),
    ),
    ("assistant", "", (_bash("git add -A tally tests CHANGELOG.md && git diff --cached"),)),
    (
        "assistant",
        "",
        (
            _bash("git commit -qm 'Read the sign of an offset for its minutes too (T-4417)'"),
            _bash("git log --oneline && git status --short && python -m pip list"),
        ),
    ),
    (
        "assistant",
        "Both tickets are done and committed.\n\n"
        "- T-4417: `parse_zone` gave the sign to the hours only, so -03:30 was read as -02:30. "
        "The sign now belongs to the whole offset; `tests/test_st_johns.py` fails without it.\n"
        "- T-4422: the hour column of the CSV names the zone.\n\n"
        "Not checked: logs of real sites, and whether the nightly job parses the hour column.",
        (),
    ),
    (
        "user",
        "Thanks. You have not told me the id of the first failed request in St. John's yet. And "
        "which tests failed before you changed anything?",
        (),
    ),
]
