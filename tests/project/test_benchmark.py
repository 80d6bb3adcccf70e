"""scripts/benchmark.py: pages agree with what commands print, and a page that lies is found."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("benchmark", ROOT / "scripts" / "benchmark.py")
assert SPEC is not None
assert SPEC.loader is not None
benchmark = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(benchmark)

MARKED = [
    pytest.param(name, text, id=f"{page.name}-{name}") for page, name, text in benchmark.blocks()
]


@pytest.mark.parametrize(("name", "text"), MARKED)
def test_a_page_says_what_the_command_printed(name: str, text: str) -> None:
    output = benchmark.run(name) if benchmark.COMMANDS[name].quick else benchmark.kept(name)
    assert benchmark.numbers(text)
    assert benchmark.disagreements(name, text, output) == []


def test_a_number_that_was_not_printed_is_named_with_its_line() -> None:
    found = benchmark.disagreements("x", "| a | 1,234 |\n| b | 5.0 % |\n", "1234 and 5.1\n")
    assert found == ["| b | 5.0 % |   <- not printed: 5.0"]


def test_an_interval_has_two_numbers_and_a_thousand_one() -> None:
    assert benchmark.numbers("70.9 [67,100] of 1,434") == {"70.9", "67", "100", "1434"}


def test_every_marked_part_names_a_command_that_is_there() -> None:
    for _, name, _ in benchmark.blocks():
        program, *_ = words = benchmark.COMMANDS[name].words.split()
        assert words[1] == "trimtab" if program == "-m" else (ROOT / program).exists()
    assert {name for _, name, _ in benchmark.blocks()} >= {
        "fleet", "answerable", "peers", "lookup",
    }  # fmt: skip
