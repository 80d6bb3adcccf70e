"""scripts/english.py finds what it is for, and passes over what is not prose."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import english  # noqa: E402

PAGE = ROOT / "docs" / "page.md"

AGAINST = [
    "The note stands for old steps.",
    "Rows go back as they came.",
    "A cut is dearer.",
    "The proxy runs beside the agent.",
    "It has a file of its own.",
    "What went can be had again.",
    "The bill comes to $3.",
    "It prints 3 edit(s).",
    "The request is legal.",
    "It counts the head.",
    "It is refused all the same.",
    "It is hence cut.",
    "The original can be had.",
    "It does not only cut but also counts.",
    "You can easily undo it.",
    "Utilize a store.",
    "Use a store, e.g. Redis.",
]


@pytest.mark.parametrize("sentence", AGAINST)
def test_a_word_of_the_list_is_found_with_its_line(sentence):
    found = list(english.against_rules(PAGE, english.prose(f"One line.\n{sentence}\n")))
    assert [finding.line for finding in found] == [2] * len(found)
    assert found


def test_each_rule_has_a_sentence_that_only_it_finds():
    said = {str(one).split(": ", 1)[1] for s in AGAINST for one in english.against_rules(PAGE, s)}
    assert {rule.instead for rule in english.RULES} == {one.rpartition(": ")[2] for one in said}


@pytest.mark.parametrize(
    "text",
    [
        "```python\nlegal = 'as it came'\n```\n",
        "Set `illegal` to 1.",
        "See [a page](illegal-moves.md).",
        "<!-- legal -->",
        "The head of the file has a licence.",
        "They run on their phone.",
    ],
)
def test_code_links_and_the_usual_word_pass(text):
    assert not list(english.against_rules(PAGE, english.prose(text)))


def test_a_sentence_of_more_than_forty_words_is_found_and_a_list_is_not_one_sentence():
    long = " ".join(["word"] * 41)
    assert [one.line for one in english.long_sentences(PAGE, f"First.\n\n{long}.\n")] == [3]
    items = "\n".join(f"- {' '.join(['word'] * 20)}" for _ in range(3))
    assert not list(english.long_sentences(PAGE, f"Three things:\n\n{items}\n"))


def test_strings_that_users_read_are_found_and_docstrings_are_not(tmp_path):
    module = tmp_path / "module.py"
    module.write_text('"""It is legal."""\nERROR = "it is illegal here"\nKEY = "legal"\n')
    assert list(english.strings(module)) == [(2, "it is illegal here")]


def test_words_are_counted_without_code_marks_and_for_readme_without_tables():
    text = english.prose("# One two\n\n```sh\nthree\n```\n\n| four |\n|---|\n\n- `five` - six\n")
    assert english.words(text) == 5
    assert english.words(english.without_tables(text)) == 4
